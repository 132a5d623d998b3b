// Modules in loading order, from files that say themselves what they need.
import { execFileSync } from 'node:child_process'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { createHostCommands } from '../../../../core/process/run.ts'
import { EARLY_MODULES, LATE_MODULES, OPTIONAL_MODULES, VOLUME_MODULES, VSOCK_MODULES, dependenciesOf, loadModules, openModules } from '../../../../plugins/guest/system/modules.ts'
import { testFolder } from '../../../helpers/folder.ts'

const commands = createHostCommands()

/** A relocatable ELF file with just the section that is read. */
function module (depends: string): Buffer {
  const info = Buffer.from(`license=GPL\0depends=${depends}\0retpoline=Y\0`)
  const names = Buffer.from('\0.modinfo\0.shstrtab\0')
  const header = Buffer.alloc(64)
  header.write('\x7fELF', 0, 'latin1')
  header[4] = 2
  header.writeBigUInt64LE(BigInt(64 + info.length + names.length), 40)
  header.writeUInt16LE(3, 60)
  header.writeUInt16LE(2, 62)
  const section = (name: number, offset: number, length: number) => {
    const bytes = Buffer.alloc(64)
    bytes.writeUInt32LE(name, 0)
    bytes.writeBigUInt64LE(BigInt(offset), 24)
    bytes.writeBigUInt64LE(BigInt(length), 32)
    return bytes
  }
  return Buffer.concat([header, info, names, section(0, 0, 0), section(1, 64, info.length), section(10, 64 + info.length, names.length)])
}

const DEPENDS: Readonly<Record<string, string>> = {
  virtio_pci: 'virtio_pci_modern_dev,virtio,extra-helper', virtio_net: 'net_failover,virtio', net_failover: 'failover', erofs: 'libcrc32c', scsi_mod: 'scsi_common', sd_mod: 'scsi_mod', virtio_scsi: 'scsi_mod,virtio'
}

async function moduleFolder (t: Test): Promise<string> {
  const folder = testFolder(t)
  await mkdir(join(folder, 'kernel/a/b'), { recursive: true })
  await writeFile(join(folder, 'modules.builtin'), 'kernel/drivers/char/hw_random/rng-core.ko\nkernel/fs/overlayfs/overlay.ko\n')
  for (const name of [...EARLY_MODULES, ...LATE_MODULES, 'libcrc32c', 'scsi_mod', 'scsi_common', 'sd_mod', 'virtio_scsi', 'extra_helper', 'unused']) {
    if (name !== 'rng-core' && name !== 'overlay') await writeFile(join(folder, 'kernel/a/b', `${name}.ko`), module(DEPENDS[name] ?? ''))
  }
  return folder
}

t.test('each module comes once and after those it needs; built-in ones are left out', async (t) => {
  const { early, late, volumes } = await loadModules(commands, await moduleFolder(t), t.testdirName)
  t.same(early.map(({ file }) => file), ['virtio_ring.ko', 'virtio.ko', 'virtio_pci_modern_dev.ko', 'virtio_pci_legacy_dev.ko', 'extra_helper.ko', 'virtio_pci.ko', 'virtio_console.ko', 'virtio_rng.ko',
    'failover.ko', 'net_failover.ko', 'virtio_net.ko', 'libcrc32c.ko', 'erofs.ko'])
  t.same(late.map(({ file }) => file), ['virtio_blk.ko'], 'only disks, whose sizes differ between clones, wait')
  t.same(volumes.map(({ file, parameters }) => [file, parameters]), [['scsi_common.ko', undefined], ['scsi_mod.ko', 'scan=manual'], ['sd_mod.ko', undefined], ['virtio_scsi.ko', undefined]])
})

t.test('of a kernel that has everything built in, and names nothing that erofs needs, no module is asked for', async (t) => {
  const folder = testFolder(t, { kernel: {}, 'modules.builtin': [...EARLY_MODULES, ...LATE_MODULES, ...VOLUME_MODULES, ...VSOCK_MODULES].map((name) => `kernel/${name.split(' ')[0] ?? ''}.ko\n`).join('') })
  t.same(await loadModules(commands, folder, folder), { early: [], late: [], volumes: [], vsock: [] })
  const modules = await openModules(commands, folder, folder)
  t.equal(modules.has('virtio-pci'), false, 'there is no file of it')
  await t.rejects(modules.add('9p', []), { code: 'kernel_module_missing', message: /9p/ })
})

t.test('modules that are of use where a kernel has them are last', async (t) => {
  const folder = await moduleFolder(t)
  for (const name of OPTIONAL_MODULES) await writeFile(join(folder, 'kernel/a/b', `${name}.ko`), module(name === 'tcp_diag' ? 'inet_diag' : ''))
  const { early } = await loadModules(commands, folder, t.testdirName)
  t.same(early.slice(-5).map(({ file }) => file), ['erofs.ko', 'virtio_mmio.ko', 'inet_diag.ko', 'tcp_diag.ko', 'virtio_balloon.ko'])
})

t.test('compressed modules are unpacked', async (t) => {
  const folder = await moduleFolder(t)
  const at = join(folder, 'kernel/a/b')
  for (const [name, command] of [['erofs', 'xz'], ['virtio_blk', 'zstd'], ['failover', 'gzip']] as const) {
    execFileSync(command, ['-q', join(at, `${name}.ko`)])
    await rm(join(at, `${name}.ko`), { force: true })
  }
  const { early, late } = await loadModules(commands, folder, t.testdirName)
  for (const name of ['erofs', 'virtio_blk', 'failover']) t.ok([...early, ...late].find(({ file }) => file === `${name}.ko`)?.content.equals(module(DEPENDS[name] ?? '')), name)
})

t.test('a module that is nowhere is named', async (t) => {
  const folder = await moduleFolder(t)
  await rm(join(folder, 'kernel/a/b/extra_helper.ko'))
  await t.rejects(loadModules(commands, folder, folder), { code: 'kernel_module_missing', message: /extra_helper/ })
})

t.test('a file without the section needs nothing', async (t) => {
  t.same(dependenciesOf(Buffer.from('no module')), [])
  t.same(dependenciesOf(module('a-b,c')), ['a_b', 'c'])
})
