// The bootable system: built whole and once, found again, and made anew only when a part of it changed.
import { mkdir, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pino } from 'pino'
import t from 'tap'
import { createHostCommands } from '../../../../core/process/run.ts'
import type { HostCommands, RunResult } from '../../../../core/contracts/services.ts'
import type { GuestConfig } from '../../../../plugins/guest/manifest.ts'
import { createSystems, type Systems } from '../../../../plugins/guest/system/systems.ts'
import { readCpio } from '../helpers/cpio-reader.ts'
import { initPath, KERNEL_CACHE, testFolder } from '../helpers/machine.ts'

// the first run of all downloads a package of 27 MB
t.setTimeout(300_000)

const CONFIG: GuestConfig = { kernelPackage: 'linux-image-cloud-amd64', kernelCache: KERNEL_CACHE, kernelHeaders: true, kernelArguments: [], prepare: false, answerTimeout: '1000ms' }

/** The real commands, counted. */
class Counted implements HostCommands {
  readonly ran: string[] = []
  readonly #real = createHostCommands()
  run (...args: Parameters<HostCommands['run']>): Promise<RunResult> {
    this.ran.push([args[0], ...args[1]].join(' '))
    return this.#real.run(...args)
  }
}

function systemsIn (folder: string, init: string, config: Partial<GuestConfig> = {}, commands: HostCommands = createHostCommands()): Systems {
  return createSystems({ commands, log: pino({ level: 'silent' }), folder: join(folder, 'system'), initPath: init, config: { ...CONFIG, ...config } })
}

t.test('the real kernel becomes a system, once for all who ask, and is found again', async (t) => {
  const folder = await testFolder(t)
  const init = await initPath(folder)
  const commands = new Counted()
  const systems = systemsIn(folder, init, {}, commands)
  const [one, other] = await Promise.all([systems.system(), systems.system()])
  t.equal(one, other)
  t.equal(commands.ran.filter((command) => command.startsWith('dpkg-deb -x')).length, 1)
  const head = (await readFile(one.kernel)).subarray(0, 4)
  t.same(head, Buffer.from('\x7fELF', 'latin1'))
  t.match(one.version, /^\d[\w.+~-]+-[0-9a-f]{12}$/)
  t.ok(one.arguments.includes('quiet'))

  const entries = readCpio(await readFile(one.initrd))
  t.same(entries.filter((entry) => (entry.mode & 0o170000) === 0o040000).map((entry) => entry.path), ['dev', 'lib', 'lib/modules', 'new', 'proc', 'run', 'sys'])
  t.ok(entries.find((entry) => entry.path === 'init')?.content.equals(await readFile(init)))
  const list = (name: string) => entries.find((entry) => entry.path === name)?.content.toString().trim().split('\n') ?? []
  for (const file of [...list('modules.early'), ...list('modules.late')]) t.ok(entries.some((entry) => entry.path === `lib/modules/${file}`), file)
  t.ok(list('modules.early').includes('virtio_console.ko'))
  t.ok(list('modules.early').indexOf('libcrc32c.ko') < list('modules.early').indexOf('erofs.ko'))
  t.same(list('modules.late'), ['virtio_blk.ko'])
  t.ok(list('modules.volumes').includes('scsi_mod.ko scan=manual'))
  for (const line of list('modules.volumes')) t.ok(entries.some((entry) => entry.path === `lib/modules/${line.split(' ')[0] ?? ''}`), line)

  const again = new Counted()
  t.same(await systemsIn(folder, init, {}, again).system(), one)
  t.notOk(again.ran.some((command) => command.startsWith('dpkg-deb')), 'nothing is unpacked for a system that is there')
  t.same((await readdir(join(folder, 'system'))).length, 1, 'no temporary folder is left')

  await t.test('what an older recipe made with the same outcome is noted under the newer one, and made but once more', async (t) => {
    const recipe = join(folder, 'system', one.version, 'recipe.json')
    const made: Record<string, unknown> = JSON.parse(await readFile(recipe, 'utf8'))
    await writeFile(recipe, JSON.stringify({ ...made, recipe: 0 }))
    t.same(await systemsIn(folder, init).system(), one)
    t.same(JSON.parse(await readFile(recipe, 'utf8')), made)
    const after = new Counted()
    t.same(await systemsIn(folder, init, {}, after).system(), one)
    t.notOk(after.ran.some((command) => command.startsWith('dpkg-deb')))
  })

  await t.test('another berth-init gives another version; the old system stays for the VMs that use it', async (t) => {
    const changed = join(folder, 'changed-init')
    await writeFile(changed, Buffer.concat([await readFile(init), Buffer.from('x')]))
    const next = await systemsIn(folder, changed).system()
    t.not(next.version, one.version)
    t.ok((await stat(one.initrd)).isFile())
  })

  await t.test('without apt the last system is used', async (t) => {
    const offline: HostCommands = { run: (file, args) => createHostCommands().run('false', [file, ...args]) }
    t.same(await systemsIn(folder, init, {}, offline).system(), one)
  })
})

t.test('an own kernel with its modules is used instead of the package', async (t) => {
  const folder = await testFolder(t)
  const init = await initPath(folder)
  const packaged = await systemsIn(folder, init).system()
  const modules = join(folder, 'modules')
  await mkdir(join(modules, 'kernel'), { recursive: true })
  const names = ['virtio_ring', 'virtio', 'virtio_pci_modern_dev', 'virtio_pci_legacy_dev', 'virtio_pci', 'virtio_console', 'rng-core', 'virtio-rng', 'virtio_blk', 'failover', 'net_failover', 'virtio_net', 'libcrc32c', 'erofs', 'overlay', 'scsi_mod', 'sd_mod', 'virtio_scsi']
  await writeFile(join(modules, 'modules.builtin'), names.map((name) => `kernel/${name}.ko\n`).join(''))
  const own = await systemsIn(folder, init, { kernelPath: packaged.kernel, modulesPath: modules, kernelArguments: ['mitigations=off'] }).system()
  t.match(own.version, /^own-/)
  t.ok((await readFile(own.kernel)).equals(await readFile(packaged.kernel)))
  t.equal(own.arguments.at(-1), 'mitigations=off')
  await t.rejects(systemsIn(folder, init, { kernelPath: packaged.kernel }).system(), { code: 'kernel_unavailable', message: /belong together/ })
  await t.rejects(systemsIn(folder, init, { kernelPath: '/none', modulesPath: modules }).system(), { code: 'kernel_unavailable', message: /\/none/ })
})

t.test('a build that was killed leaves nothing that is taken for whole, and the next start removes it', async (t) => {
  const folder = await testFolder(t)
  const half = join(folder, 'system/.build-abc123')
  await mkdir(join(half, 'system'), { recursive: true })
  await writeFile(join(half, 'system/vmlinux'), 'half a kernel')
  await mkdir(join(folder, 'system/cache'))
  await utimes(half, 1, 1)
  const systems = systemsIn(folder, await initPath(folder))
  await systems.clean()
  t.same(await readdir(join(folder, 'system')), ['cache'])
})

t.test('closing gives up a build, and leaves nothing of it', async (t) => {
  const folder = await testFolder(t)
  const systems = systemsIn(folder, await initPath(folder))
  const building = systems.system()
  building.catch(() => {})
  await systems.close()
  await t.rejects(building)
  t.same((await readdir(join(folder, 'system')).catch(() => [])).filter((name) => name.startsWith('.build-')), [])
})

t.test('a missing berth-init is said with its remedy, and the next call tries again', async (t) => {
  const folder = await testFolder(t)
  const init = join(folder, 'missing')
  const systems = systemsIn(folder, init)
  await t.rejects(systems.system(), { code: 'guest_init_missing', message: /run "npm run build"/ })
  await writeFile(init, await readFile(await initPath(folder)))
  t.match(await systems.system(), { version: /./ })
  await rm(init)
})
