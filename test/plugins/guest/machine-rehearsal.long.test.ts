// Rehearsals in real VMs: clones of a template that rehearse on throw-away disks, get the disks of an instance, and start its program as if nothing had been.
import { chmod, copyFile, mkdtemp, open, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import type { Test } from 'tap'
import type { MemoryImage, Vm, VmDisk, VmImaging, VmSpec } from '../../../core/library/hypervisor.ts'
import type { GuestLink, Workload } from '../../../plugins/guest/contract.ts'
import { eventually } from '../../helpers/eventually.ts'
import { commands, guest, makeDriver, makeMachines } from '../hypervisor-qemu/machine.ts'

const MIB = 2 ** 20
const STAGE_BYTES = 16 * MIB
const OWN_BYTES = 300 * MIB
/** size of the disks of a template whose guest has its driver on them */
const PLACEHOLDER_BYTES = 2 ** 43
const WORKLOAD: Workload = { argv: ['/bin/wait'], env: {}, cwd: '/', user: '', hostname: 'box', mounts: [], agent: true }

t.setTimeout(1_400_000)
const machines = await makeMachines()
const driver = await makeDriver()
const folder = await mkdtemp(join(tmpdir(), 'berth-rehearsal-'))
await chmod(folder, 0o711)
t.teardown(async () => { await rm(folder, { recursive: true }); await machines.remove() })

function present<T> (value: T | undefined): T {
  if (value === undefined) throw new Error('the driver cannot do that')
  return value
}

const imaging = present(driver.imaging)
const facet = (vm: Vm): VmImaging => present(vm.imaging)

async function makeSpec (memory: VmSpec['memory']): Promise<VmSpec> {
  const directory = await mkdtemp(join(folder, 'vm-'))
  const files = { vmm: join(directory, 'vmm'), output: join(directory, 'output'), report: join(directory, 'report') }
  for (const file of Object.values(files)) await writeFile(file, '')
  return { id: 'rehearsal', directory, files, ...await machines.make(directory), ...memory === undefined ? {} : { memory } }
}

async function makeDisk (path: string, bytes: number): Promise<string> {
  const file = await open(path, 'w')
  await file.truncate(bytes)
  await file.close()
  await commands.run('mkfs.ext4', ['-q', '-F', path])
  return path
}

/** An image with nothing but folders, so that it is smaller than any real one. */
async function makeStage (): Promise<readonly VmDisk[]> {
  const root = join(folder, 'stage')
  await commands.run('mkdir', ['-p', ...['bin', 'dev', 'etc', 'proc', 'sys', 'tmp'].map((name) => join(root, name))])
  await commands.run('mkfs.erofs', ['--all-root', `${root}.erofs`, root])
  return [{ id: 'root', path: `${root}.erofs`, readonly: true }, { id: 'overlay', path: await makeDisk(`${root}.ext4`, STAGE_BYTES), readonly: false }]
}

const stage = await makeStage()

interface Template {
  readonly image: MemoryImage
  readonly memory: string
  readonly statePath: string
  readonly bootId: string
}

let template: Template
/** its guest has its driver on its disks */
let bound: Template

/** A clone that waits, on a stage of its own. */
async function makeSpare (t: Test, changes: { readonly overlay?: string, readonly template?: Template } = {}): Promise<{ vm: Vm, own: readonly VmDisk[], spec: VmSpec, link: GuestLink }> {
  const { image, memory, statePath } = changes.template ?? template
  const made = await makeSpec({ path: memory, sharing: 'private' })
  const overlay = changes.overlay ?? join(made.directory, 'stage.ext4')
  if (changes.overlay === undefined) await copyFile(present(stage[1]).path, overlay)
  const spec = { ...made, disks: [present(stage[0]), { ...present(stage[1]), path: overlay }] }
  const vm = await imaging.restore(spec, image, statePath)
  t.teardown(() => vm.kill())
  const own = [present(made.disks[0]), { ...present(made.disks[1]), path: await makeDisk(join(made.directory, 'own.ext4'), OWN_BYTES) }]
  return { vm, own, spec, link: await talk(t, vm) }
}

async function talk (t: Test, vm: Vm): Promise<GuestLink> {
  const link = guest.link(await vm.connect())
  t.teardown(() => link.close())
  await link.hello
  return link
}

async function giveDisks (vm: Vm, disks: readonly VmDisk[]): Promise<void> {
  await facet(vm).pause()
  for (const { id, path } of disks) await vm.replaceDisk?.(id, path)
  await facet(vm).resume()
}

async function say (link: GuestLink, script: string): Promise<string> {
  const session = link.exec({ argv: ['/bin/busybox', 'sh', '-c', script] })
  session.stdin.end()
  const [out] = await Promise.all([text(session.stdout), session.result])
  return out.trim()
}

async function isClean (t: Test, path: string): Promise<void> {
  const copy = `${path}.copy`
  await copyFile(path, copy)
  await commands.run('e2fsck', ['-fn', copy])
  t.pass(`${path} is a clean file system`)
}

async function powerOff (vm: Vm, link: GuestLink): Promise<void> {
  await link.shutdown(0, 9)
  await vm.wait()
}

async function makeTemplate (t: Test, name: string, prepare: (spec: VmSpec) => Promise<VmSpec>, isBound: boolean): Promise<Template> {
  const memory = join(folder, `${name}-memory`); const statePath = join(folder, `${name}-state`)
  await writeFile(memory, '')
  const vm = await driver.launch(await prepare(await makeSpec({ path: memory, sharing: 'shared' })))
  t.teardown(() => vm.kill())
  const link = await talk(t, vm)
  const { bootId } = await link.hello
  if (isBound) await link.bind()
  link.close()
  const image = await facet(vm).capture({ statePath })
  t.ok(image.memoryStoredBytes > 0)
  await vm.kill()
  return { image, memory, statePath, bootId }
}

/** Disks that are larger than any other. */
async function withPlaceholders (spec: VmSpec): Promise<VmSpec> {
  const disks = await Promise.all(spec.disks.map(async (disk) => {
    const path = join(spec.directory, `placeholder-${disk.id}`)
    await copyFile(disk.path, path)
    await truncate(path, PLACEHOLDER_BYTES)
    return { ...disk, path }
  }))
  return { ...spec, disks }
}

await t.test('templates are made', async (t) => {
  template = await makeTemplate(t, 'held', async (spec) => spec, false)
  bound = await makeTemplate(t, 'bound', withPlaceholders, true)
})

for (const isBound of [false, true]) {
  await t.test(`rehearse once and more, ${isBound ? 'on disks that have their driver, ' : ''}then start on other disks: nothing of the rehearsals is left`, async (t) => {
    const bootIds: string[] = []
    const { bootId: templateBootId } = isBound ? bound : template
    for (const rehearsals of [1, 3]) {
      const { vm, own, spec, link: first } = await makeSpare(t, isBound ? { template: bound } : {})
      for (let n = 0; n < rehearsals; n++) await first.rehearse()
      const link = await talk(t, vm)
      t.match(await link.hello, { phase: 'waiting', bootId: templateBootId })
      t.equal(await readFile(spec.files.output, 'utf8'), '', 'the program of a rehearsal is not heard')
      await facet(vm).pause()
      await isClean(t, present(spec.disks[1]).path)
      await facet(vm).resume()
      await giveDisks(vm, own)
      await link.run(WORKLOAD)
      t.equal(Number(await say(link, 'busybox cat /sys/block/vdb/size')) * 512, OWN_BYTES, 'it sees the size of its own disk')
      t.equal(Number(await say(link, 'busybox cat /sys/block/vda/size')) * 512, (await stat(present(own[0]).path)).size, 'and of its image')
      t.equal(await say(link, 'busybox ls /sys/block | busybox grep -c vd'), '2')
      t.equal(await say(link, 'busybox ls /bin/print'), '/bin/print', 'its image is there')
      t.equal(await say(link, 'busybox ls / | busybox grep rehearsal; busybox ls /tmp; busybox ls /etc; busybox hostname'), 'hostname\nhosts\nmachine-id\nbox')
      t.equal(await say(link, 'busybox ls -d /sys/fs/cgroup/*/'), '/sys/fs/cgroup/berth/')
      t.equal(await say(link, 'busybox grep -c . /proc/mounts'), '8', 'root, proc, sys, dev, pts, shm, mqueue, cgroup')
      t.equal(await say(link, 'busybox grep -l "^State:.Z" /proc/[0-9]*/status'), '', 'no zombies')
      t.equal(await say(link, 'busybox grep -c "ext4\\|erofs" /proc/mounts'), '0', 'no file systems of a rehearsal')
      await t.rejects(link.rehearse(), { code: 'guest_refused', errno: 114 })
      await t.rejects(link.bind(), { code: 'guest_refused', errno: 114 })
      bootIds.push(await say(link, 'busybox cat /proc/sys/kernel/random/boot_id'))
      await say(link, 'echo kept > /kept; busybox sync')
      await powerOff(vm, link)
      await isClean(t, present(own[1]).path)
      await isClean(t, present(spec.disks[1]).path)
      t.match(await commands.run('debugfs', ['-R', 'cat upper/kept', present(own[1]).path]), { stdout: 'kept\n' }, 'it wrote to its own disk')
      t.notMatch((await commands.run('debugfs', ['-R', 'ls upper', present(own[1]).path])).stdout, /rehearsal/)
      t.notMatch(await readFile(spec.files.vmm, 'utf8'), /Oops|BUG|Call Trace|berth-init/)
    }
    t.not(bootIds[0], bootIds[1], 'clones are machines of their own')
    t.not(bootIds[0], templateBootId)
  })
}

await t.test('a rehearsal that fails says why, and the guest starts on other disks', async (t) => {
  const empty = join(folder, 'empty')
  await writeFile(empty, Buffer.alloc(STAGE_BYTES))
  const { vm, own, link } = await makeSpare(t, { overlay: empty })
  for (let n = 0; n < 2; n++) await t.rejects(link.rehearse(), { code: 'guest_refused', errno: 5, message: /\/dev\/vdb cannot be mounted: Invalid argument/ })
  await giveDisks(vm, own)
  await link.rehearse()
  await link.run(WORKLOAD)
  t.equal(Number(await say(link, 'busybox cat /sys/block/vdb/size')) * 512, OWN_BYTES)
  await powerOff(vm, link)
  await isClean(t, present(own[1]).path)
})

await t.test('while it rehearses a guest takes neither a workload nor another rehearsal, and a host that goes is no hindrance', async (t) => {
  const { vm, own, link } = await makeSpare(t)
  const rehearsed = link.rehearse()
  // It is sent now; a workload would be sent before it otherwise.
  await link.hello
  const refused = [link.run(WORKLOAD), link.rehearse(), link.bind()]
  for (const call of refused) await t.rejects(call, { code: 'guest_refused', errno: 11 })
  await rehearsed
  link.rehearse().catch(() => {})
  await link.stat('/', { follow: true }).catch(() => {})
  const other = await talk(t, vm)
  t.equal((await other.hello).phase, 'waiting')
  await eventually('the rehearsal of the host that went is over', () => other.rehearse().then(() => true, () => false))
  await giveDisks(vm, own)
  await other.run({ ...WORKLOAD, argv: ['/bin/print', 'it starts'] })
  await vm.wait()
})

await t.test('a guest that rehearses can be told to end', async (t) => {
  const { vm, link } = await makeSpare(t)
  link.rehearse().catch(() => {})
  await link.shutdown(0)
  await vm.wait()
  t.equal(vm.state.status, 'gone')
})
