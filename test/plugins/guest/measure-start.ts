// Measures the start of a program, in turn: in a VM that boots, in a clone of a template, and in a spare: a clone that has rehearsed.
// usage: node dist/test/plugins/guest/measure-start.js [ROUNDS [ARGV…]]; ARGV[0] is a program of this host, which is copied with its libraries
import { copyFile, mkdir, mkdtemp, open, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { MemoryImage, Vm, VmImaging, VmSpec } from '../../../core/library/hypervisor.ts'
import type { GuestLink, Workload } from '../../../plugins/guest/contract.ts'
import { commands, guest, makeDriver, makeMachines } from '../hypervisor-qemu/machine.ts'

const [rounds = '8', ...argv] = process.argv.slice(2)
const WORKLOAD: Workload = { argv: argv.length > 0 ? argv : ['/bin/busybox', 'echo', 'here'], env: {}, cwd: '/', user: '', hostname: 'measured', mounts: [], agent: true }
const REHEARSAL_DISK_BYTES = 2 ** 24

const times = new Map<string, number[]>()
function note (name: string, value: number): void { times.set(name, [...times.get(name) ?? [], value]) }

const machines = await makeMachines()
const driver = await makeDriver()
const imaging = present(driver.imaging)
await driver.probe()
const top = await mkdtemp(join(tmpdir(), 'berth-measure-'))
const image = await makeImage()
const shm = await mkdtemp('/dev/shm/berth-measure-')
const started: Vm[] = []

function present<T> (value: T | undefined): T {
  if (value === undefined) throw new Error('the driver cannot do that')
  return value
}

const facet = (vm: Vm): VmImaging => present(vm.imaging)

function keep (vm: Vm): Vm {
  started.push(vm)
  return vm
}

async function makeSpec (memory?: VmSpec['memory']): Promise<VmSpec> {
  const directory = await mkdtemp(join(top, 'vm-'))
  const files = { vmm: join(directory, 'vmm'), output: join(directory, 'output'), report: join(directory, 'report') }
  for (const file of Object.values(files)) await writeFile(file, '')
  const machine = await machines.make(directory)
  const disks = machine.disks.map((disk) => disk.readonly ? { ...disk, path: image } : disk)
  return { id: 'measure', directory, files, ...machine, disks, memoryBytes: 2 ** 28, ...memory === undefined ? {} : { memory } }
}

/** The figure that other work on the machine disturbs least. */
async function cpuMs (vm: Vm): Promise<number> {
  const tasks = await threadFigures(`/proc/${vm.handle.pid}/task`)
  return tasks.reduce((sum, text) => sum + Number(text.split(' ')[0]) / 1e6, 0)
}

/** The scheduler's figures of all threads; one that has ended meanwhile counts nothing. */
async function threadFigures (folder: string): Promise<string[]> {
  const names = await readdir(folder).catch(() => [])
  return await Promise.all(names.map(async (name) => await readFile(join(folder, name, 'schedstat'), 'utf8').catch(() => '0')))
}

async function pssMib (vm: Vm): Promise<number> {
  return Number(/^Pss:\s+(\d+)/m.exec(await readFile(`/proc/${vm.handle.pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0) / 1024
}

async function firstOutput (spec: VmSpec): Promise<void> {
  const file = await open(spec.files.output)
  try {
    while ((await file.stat()).size === 0) await sleep(1)
  } finally {
    await file.close()
  }
}

async function runTimed (name: string, vm: Vm, spec: VmSpec, link: GuestLink, begin: () => Promise<void>): Promise<void> {
  const cpu = await cpuMs(vm)
  const start = performance.now()
  const running = begin().then(() => link.run(WORKLOAD)).then(() => note(`${name}: to started, ms`, performance.now() - start))
  await firstOutput(spec)
  note(`${name}: to first output, ms`, performance.now() - start)
  note(`${name}: processor, ms`, await cpuMs(vm) - cpu)
  await running
}

async function cold (): Promise<void> {
  const spec = await makeSpec()
  const start = performance.now()
  const vm = keep(await driver.launch(spec))
  const link = guest.link(await vm.connect())
  await Promise.all([link.run(WORKLOAD), firstOutput(spec)])
  note('cold: to first output, ms', performance.now() - start)
  note('cold: processor, ms', await cpuMs(vm))
  link.close()
  await vm.kill()
}

/** An image of one program of this host and what it is linked with. */
async function makeImage (): Promise<string> {
  const root = join(top, 'root')
  const [program = ''] = WORKLOAD.argv
  const libraries = await commands.run('ldd', [program]).then(({ stdout }) => stdout.match(/\/\S+/g) ?? [], () => [])
  for (const folder of ['dev', 'etc', 'proc', 'sys', 'tmp']) await mkdir(join(root, folder), { recursive: true })
  for (const file of [program, ...libraries]) {
    await mkdir(join(root, dirname(file)), { recursive: true })
    await copyFile(file, join(root, file))
  }
  const image = join(top, 'root.erofs')
  await commands.run('mkfs.erofs', ['--all-root', image, root])
  return image
}

interface Template { readonly image: MemoryImage, readonly statePath: string, readonly path: string }

async function makeTemplate (): Promise<Template> {
  const path = join(shm, 'memory')
  await writeFile(path, '')
  const vm = keep(await driver.launch(await makeSpec({ path, sharing: 'shared' })))
  const link = guest.link(await vm.connect())
  await link.hello
  link.close()
  const statePath = join(shm, 'state')
  const image = await facet(vm).capture({ statePath })
  await vm.kill()
  return { image, statePath, path }
}

async function restored ({ image, statePath, path }: Template, name: string, disks?: VmSpec['disks']): Promise<{ vm: Vm, spec: VmSpec, link: GuestLink }> {
  const made = await makeSpec({ path, sharing: 'private' })
  const spec = disks === undefined ? made : { ...made, disks }
  const start = performance.now()
  const vm = keep(await imaging.restore(spec, image, statePath))
  note(`${name}: restore, ms`, performance.now() - start)
  const link = guest.link(await vm.connect())
  await link.hello
  note(`${name}: restore to hello, ms`, performance.now() - start)
  return { vm, spec: made, link }
}

async function clone (template: Template): Promise<void> {
  const { vm, spec, link } = await restored(template, 'clone')
  await runTimed('clone', vm, spec, link, async () => {})
  link.close()
  await vm.kill()
}

async function makeStage (): Promise<VmSpec['disks']> {
  const root = join(top, 'stage')
  for (const name of ['dev', 'etc', 'proc', 'sys', 'tmp']) await mkdir(join(root, name), { recursive: true })
  const image = `${root}.erofs`
  await commands.run('mkfs.erofs', ['--all-root', image, root])
  const overlay = `${root}.ext4`
  const file = await open(overlay, 'w')
  await file.truncate(REHEARSAL_DISK_BYTES)
  await file.close()
  await commands.run('mkfs.ext4', ['-q', '-F', overlay])
  return [{ id: 'root', path: image, readonly: true }, { id: 'overlay', path: overlay, readonly: false }]
}

async function spare (template: Template, stage: VmSpec['disks']): Promise<void> {
  const { vm, spec, link } = await restored(template, 'spare', stage)
  const cpu = await cpuMs(vm)
  note('spare: memory before the rehearsal, PSS MiB', await pssMib(vm))
  const begin = performance.now()
  await link.rehearse()
  note('spare: rehearsal, ms', performance.now() - begin)
  note('spare: rehearsal, processor ms', await cpuMs(vm) - cpu)
  note('spare: memory after it, PSS MiB', await pssMib(vm))
  await facet(vm).pause()
  const start = performance.now()
  await Promise.all(spec.disks.map(async (disk) => await vm.replaceDisk?.(disk.id, disk.path)))
  note('spare: both disks replaced, ms', performance.now() - start)
  await runTimed('spare', vm, spec, link, () => facet(vm).resume())
  link.close()
  await vm.kill()
}

try {
  const template = await makeTemplate()
  const stage = await makeStage()
  for (let round = 0; round < Number(rounds); round++) {
    if (round % 2 === 0) await cold()
    await clone(template)
    await spare(template, stage)
  }
} finally {
  for (const vm of started) await vm.kill()
  await rm(top, { recursive: true })
  await rm(shm, { recursive: true })
  await machines.remove()
}
for (const [name, all] of times) {
  const sorted = all.toSorted((a, b) => a - b).map((one) => Math.round(one * 10) / 10)
  console.log(JSON.stringify({ name, median: sorted[Math.floor(sorted.length / 2)], min: sorted[0], max: sorted.at(-1), n: sorted.length }))
}
