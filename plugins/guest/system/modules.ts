// Finds kernel modules by name and puts them in the order in which they can be loaded. Debian's package has no modules.dep
// (depmod runs at installation), so what a module needs is read from the module itself.
import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { HostCommands } from '../../../core/contracts/services.ts'
import { ModuleMissing } from '../errors.ts'
import { decompress, type Compression } from './decompress.ts'
import { elfSection } from './elf.ts'

/**
 * Modules that berth-init loads at once: the bus, the port, a source of randomness, and all modules whose devices are the same in all clones
 * of a template (a network device keeps the template's address until it is given another), or that have no device. The modules that they need are
 * added automatically: that differs between kernels (erofs needs libcrc32c until 6.14, and nothing since).
 */
export const EARLY_MODULES = ['virtio_ring', 'virtio', 'virtio_pci_modern_dev', 'virtio_pci_legacy_dev', 'virtio_pci', 'virtio_console', 'rng-core', 'virtio-rng', 'failover',
  'net_failover', 'virtio_net', 'erofs', 'overlay']
/** Loaded at once where the kernel has them: the bus of boards without PCI, the modules that end the connections of a copy that got another address, and the one that gives memory back to the host. */
export const OPTIONAL_MODULES = ['virtio_mmio', 'inet_diag', 'tcp_diag', 'virtio_balloon']
/** Modules whose devices have no driver until a workload has come: disks, so that each clone reads the sizes of its own. */
export const LATE_MODULES = ['virtio_blk']
/** Modules that berth-init loads at once when the driver says that the VMM has no virtio-serial. Their devices are the same in all clones, too. */
export const VSOCK_MODULES = ['vsock', 'vmw_vsock_virtio_transport_common', 'vmw_vsock_virtio_transport']
/** Modules that berth-init loads with the first volume, which most machines never have. The bus is not scanned automatically: there is only one place to look at, and nobody waits for the others. */
export const VOLUME_MODULES = ['scsi_mod scan=manual', 'sd_mod', 'virtio_scsi']

export interface KernelModule {
  /** `virtio_blk.ko` */
  readonly file: string
  readonly content: Buffer
  /** parameters for loading: `scan=manual` */
  readonly parameters?: string
}
export interface ModuleLists { readonly early: readonly KernelModule[], readonly late: readonly KernelModule[], readonly volumes: readonly KernelModule[], readonly vsock: readonly KernelModule[] }

const FILE_NAME = /^(.+)\.ko(?:\.(xz|zst|gz))?$/
const COMPRESSIONS: Readonly<Record<string, Compression>> = { xz: 'xz', zst: 'zstd', gz: 'gzip' }

/** The kernel treats `-` and `_` in module names as the same. */
function moduleName (name: string): string { return name.replaceAll('-', '_') }

async function findModules (folder: string): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const name = entry.isFile() ? FILE_NAME.exec(entry.name)?.[1] : undefined
    if (name !== undefined) found.set(moduleName(name), join(entry.parentPath, entry.name))
  }
  return found
}

async function builtinModules (folder: string): Promise<Set<string>> {
  const lines = (await readFile(join(folder, 'modules.builtin'), 'utf8')).split('\n')
  return new Set(lines.filter((line) => line !== '').map((line) => moduleName(basename(line, '.ko'))))
}

/** The modules that this one names in `depends=`. */
export function dependenciesOf (module: Buffer): string[] {
  const facts = elfSection(module, '.modinfo')?.toString('latin1').split('\0') ?? []
  const depends = facts.find((fact) => fact.startsWith('depends='))?.slice('depends='.length) ?? ''
  return depends.split(',').filter((name) => name !== '').map(moduleName)
}

/** A `/lib/modules/<release>`, and the modules that were taken from it. */
export interface ModuleFolder {
  /** whether the module has a file; a built-in one has none */
  has (name: string): boolean
  /** Adds a module (`scsi_mod scan=manual`) to the end of the list, after its dependencies; does nothing when it is built in, or already in a list. */
  add (wanted: string, list: KernelModule[]): Promise<void>
}

/** @param scratch a folder that takes unpacked modules */
export async function openModules (commands: HostCommands, folder: string, scratch: string): Promise<ModuleFolder> {
  const files = await findModules(folder)
  const builtin = await builtinModules(folder)
  const taken = new Set<string>()

  const add = async (wanted: string, list: KernelModule[]): Promise<void> => {
    const [plain = '', ...parameters] = wanted.split(' ')
    const name = moduleName(plain)
    if (taken.has(name) || builtin.has(name)) return
    taken.add(name)
    const path = files.get(name)
    if (path === undefined) throw ModuleMissing(plain, folder)
    const content = await readModule(commands, path, scratch)
    for (const dependency of dependenciesOf(content)) await add(dependency, list)
    list.push({ file: `${name}.ko`, content, ...(parameters.length === 0 ? {} : { parameters: parameters.join(' ') }) })
  }
  return { has: (name) => files.has(moduleName(name)), add }
}

/** Reads the lists of a `/lib/modules/<release>` with everything that they need, each module once and after those it depends on. */
export async function loadModules (commands: HostCommands, folder: string, scratch: string): Promise<ModuleLists> {
  const modules = await openModules(commands, folder, scratch)
  const early: KernelModule[] = []
  const late: KernelModule[] = []
  const volumes: KernelModule[] = []
  const vsock: KernelModule[] = []
  for (const name of [...EARLY_MODULES, ...OPTIONAL_MODULES.filter(modules.has)]) await modules.add(name, early)
  for (const name of LATE_MODULES) await modules.add(name, late)
  for (const name of VOLUME_MODULES) await modules.add(name, volumes)
  for (const name of VSOCK_MODULES.filter(modules.has)) await modules.add(name, vsock)
  return { early, late, volumes, vsock }
}

async function readModule (commands: HostCommands, path: string, scratch: string): Promise<Buffer> {
  const compression = COMPRESSIONS[FILE_NAME.exec(basename(path))?.[2] ?? '']
  if (compression === undefined) return await readFile(path)
  const unpacked = join(scratch, basename(path).replace(/\.\w+$/, ''))
  await decompress(commands, compression, path, unpacked)
  return await readFile(unpacked)
}
