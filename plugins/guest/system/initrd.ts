// Lays out the initrd: berth-init as /init, the modules with their lists, and the folders that it mounts on.
import { cpioArchive, type CpioEntry } from './cpio.ts'
import type { KernelModule, ModuleLists } from './modules.ts'

const FOLDERS = ['dev', 'lib', 'lib/modules', 'new', 'proc', 'run', 'sys']

export function buildInitrd (init: Buffer, modules: ModuleLists): Buffer {
  const folder = (path: string): CpioEntry => ({ path, kind: 'dir', mode: 0o755 })
  const file = (path: string, content: Buffer, mode = 0o644): CpioEntry => ({ path, kind: 'file', mode, content })
  return cpioArchive([
    ...FOLDERS.map(folder),
    // The kernel opens it for the first process before devtmpfs is mounted.
    { path: 'dev/console', kind: 'device', mode: 0o600, major: 5, minor: 1 },
    file('init', init, 0o755),
    ...[...modules.early, ...modules.late, ...modules.volumes, ...modules.vsock].map((module) => file(`lib/modules/${module.file}`, module.content)),
    file('modules.early', list(modules.early)),
    file('modules.late', list(modules.late)),
    file('modules.volumes', list(modules.volumes)),
    file('modules.vsock', list(modules.vsock))
  ])
}

/** One line for each module, in loading order, as berth-init reads it: the path below /lib/modules, and its parameters. */
function list (modules: readonly KernelModule[]): Buffer {
  return Buffer.from(modules.map(({ file, parameters }) => `${file}${parameters === undefined ? '' : ` ${parameters}`}\n`).join(''))
}
