// Measures the steps of memory images, in turn: boot, capture, copy, restore, for memory in no file, in a file in /dev/shm, and in one on disk.
// usage: node dist/test/plugins/hypervisor-qemu/measure-images.js [ROUNDS [MEMORY_MIB [TOUCHED_MIB [DISK_FOLDER]]]]
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { HypervisorImaging, MemoryImage, Vm, VmImaging, VmSpec } from '../../../core/library/hypervisor.ts'
import { copySparse } from '../../../core/fs/sparse-copy.ts'
import { syncMemoryImage } from '../../../core/library/memory-image.ts'
import { workload } from '../../contracts/hypervisor/fixture.ts'
import { commands, guest, makeDriver, makeMachines } from './machine.ts'
import { eventually } from '../../helpers/eventually.ts'

const [rounds = 5, memoryMib = 256, touchedMib = 0] = process.argv.slice(2, 5).map(Number)
const places: Readonly<Record<string, string | undefined>> = { 'no file': undefined, '/dev/shm': '/dev/shm', disk: process.argv[5] ?? tmpdir() }
const times = new Map<string, number[]>()
const CLONES = 5

function note (name: string, value: number): void { times.set(name, [...times.get(name) ?? [], value]) }

async function timed<T> (name: string, work: () => Promise<T>): Promise<T> {
  const start = performance.now()
  const result = await work()
  note(`${name}, ms`, performance.now() - start)
  return result
}

const machines = await makeMachines()
const plain = await makeDriver()
const started: Vm[] = []
/** The driver, whose VMs end with this program even when it fails. */
const driver = { ...plain, launch: async (spec: VmSpec) => keep(await plain.launch(spec)) }
const imaging: Pick<HypervisorImaging, 'restore'> = { restore: async (...args) => keep(await present(plain.imaging).restore(...args)) }
await driver.probe()

function keep (vm: Vm): Vm {
  started.push(vm)
  return vm
}

function present<T> (value: T | undefined): T {
  if (value === undefined) throw new Error('the driver makes no memory images')
  return value
}

const facet = (vm: Vm): VmImaging => present(vm.imaging)

async function makeSpec (folder: string, memory: VmSpec['memory']): Promise<VmSpec> {
  const directory = await mkdtemp(join(folder, 'vm-'))
  const files = { vmm: join(directory, 'vmm'), output: join(directory, 'output'), report: join(directory, 'report') }
  for (const file of Object.values(files)) await writeFile(file, '')
  return { id: 'measure', directory, files, ...await machines.make(directory), memoryBytes: memoryMib * 2 ** 20, memory }
}

/** The figure that other work on the machine disturbs least. */
async function cpuMs (vm: Vm): Promise<number> {
  const text = await readFile(`/proc/${vm.handle.pid}/stat`, 'utf8')
  const [user = 0, system = 0] = text.slice(text.lastIndexOf(')') + 2).split(' ').slice(11, 13).map(Number)
  return (user + system) * 10
}

async function hello (vm: Vm): Promise<void> {
  const link = guest.link(await vm.connect())
  await link.hello
  link.close()
}

async function execAnswers (vm: Vm): Promise<void> {
  const link = guest.link(await vm.connect())
  await link.hello
  await link.exec({ argv: ['/bin/busybox', 'true'] }).result
  link.close()
}

async function pssMib (pids: readonly number[]): Promise<number> {
  let sum = 0
  for (const pid of pids) sum += Number(/^Pss:\s+(\d+)/m.exec(await readFile(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0)
  return sum / 1024
}

/** A VM that has just come up, captured, as a template is. Then VMs made of that, in both ways. */
async function template (name: string, place: string | undefined, folder: string): Promise<void> {
  const files = await mkdtemp(join(place ?? folder, 'berth-measure-'))
  try {
    const path = join(files, 'memory')
    if (place !== undefined) await writeFile(path, '')
    const spec = await makeSpec(folder, place === undefined ? undefined : { path, sharing: 'shared' })
    const start = performance.now()
    const vm = await driver.launch(spec)
    await hello(vm)
    note(`${name}: boot to first word, ms`, performance.now() - start)
    note(`${name}: boot to first word, processor ms`, await cpuMs(vm))
    const statePath = join(files, 'state')
    const written = join(files, 'written')
    await timed(`${name}: pause`, () => facet(vm).pause())
    const image = await timed(`${name}: capture of the paused VM`, () => facet(vm).capture({ statePath, memoryPath: written }))
    note(`${name}: memory stored, MiB`, image.memoryStoredBytes / 2 ** 20)
    const base = join(files, 'base')
    await timed(`${name}: copy without zeros`, () => copySparse(commands, place === undefined ? written : path, base, { dropZeros: true }))
    note(`${name}: memory stored without zeros, MiB`, (await stat(base)).blocks / 2048)
    await timed(`${name}: resume`, () => facet(vm).resume())
    await vm.kill()
    await timed(`${name}: sync of the image`, () => syncMemoryImage([base, statePath]))
    if (place !== undefined) for (const sharing of ['shared', 'private'] as const) await clone(`${name}: ${sharing}`, folder, base, { image, statePath, sharing })
  } finally {
    await rm(files, { recursive: true })
  }
}

interface From { readonly image: MemoryImage, readonly statePath: string, readonly sharing: 'private' | 'shared' }

/** A VM made of a template; then its standby and its return. */
async function clone (name: string, folder: string, base: string, { image, statePath, sharing }: From): Promise<void> {
  const copy = `${base}-copy`
  const start = performance.now()
  if (sharing === 'shared') await timed(`${name}: copy`, () => copySparse(commands, base, copy))
  const path = sharing === 'shared' ? copy : base
  const spec = await makeSpec(folder, { path, sharing })
  const vm = await timed(`${name}: restore`, () => imaging.restore(spec, image, statePath))
  await timed(`${name}: first word after that`, () => hello(vm))
  note(`${name}: copy, restore and first word, ms`, performance.now() - start)
  const link = guest.link(await vm.connect())
  await timed(`${name}: start of the program`, () => link.run(workload('touch', String(touchedMib))))
  await eventually('the program has touched its memory', async () => (await readFile(spec.files.output, 'utf8')).includes('touched'))
  link.close()
  const files = { statePath: join(spec.directory, 'state'), memoryPath: `${base}-standby` }
  const before = performance.now()
  const standby = await timed(`${name}: standby: capture`, () => facet(vm).capture(files))
  await timed(`${name}: standby: end`, () => vm.kill())
  note(`${name}: standby, ms`, performance.now() - before)
  note(`${name}: standby: memory stored, MiB`, standby.memoryStoredBytes / 2 ** 20)
  const memory = { path: sharing === 'shared' ? copy : files.memoryPath, sharing: 'shared' } as const
  await timed(`${name}: standby: sync`, () => syncMemoryImage([memory.path, files.statePath]))
  const again = performance.now()
  const back = await imaging.restore({ ...spec, memory }, standby, files.statePath)
  await execAnswers(back)
  note(`${name}: standby to exec, ms`, performance.now() - again)
  await back.kill()
  await rm(copy, { force: true })
  await rm(files.memoryPath, { force: true })
}

/** PSS of idle VMs that were booted, and of as many that were made of one template in each way. */
async function density (folder: string): Promise<void> {
  const pss = async (name: string, vms: readonly Vm[]): Promise<void> => {
    for (const vm of vms) await hello(vm)
    note(`PSS of ${CLONES} VMs, ${name}, MiB`, await pssMib(vms.map((vm) => vm.handle.pid)))
    for (const vm of vms) await vm.kill()
  }
  const booted: Vm[] = []
  for (let n = 0; n < CLONES; n++) booted.push(await driver.launch(await makeSpec(folder, undefined)))
  await pss('booted', booted)
  const path = join(folder, 'memory')
  await writeFile(path, '')
  const first = await driver.launch(await makeSpec(folder, { path, sharing: 'shared' }))
  await hello(first)
  const image = await facet(first).capture({ statePath: join(folder, 'state') })
  await first.kill()
  for (const sharing of ['private', 'shared'] as const) {
    const clones: Vm[] = []
    for (let n = 0; n < CLONES; n++) {
      const own = sharing === 'private' ? path : join(folder, `memory-${n}`)
      if (sharing === 'shared') await copySparse(commands, path, own)
      clones.push(await imaging.restore(await makeSpec(folder, { path: own, sharing }), image, join(folder, 'state')))
    }
    await pss(`of one template, ${sharing}`, clones)
  }
}

const folder = await mkdtemp(join(tmpdir(), 'berth-measure-'))
try {
  for (let round = 0; round < rounds; round++) {
    for (const [name, place] of Object.entries(places)) await template(name, place, folder)
  }
  if (touchedMib === 0) await density(folder)
} finally {
  for (const vm of started) await vm.kill()
  await rm(folder, { recursive: true })
  await machines.remove()
}
for (const [name, all] of times) {
  const sorted = all.map((one) => Math.round(one)).sort((a, b) => a - b)
  console.log(JSON.stringify({ name, median: sorted[Math.floor(sorted.length / 2)], min: sorted[0], max: sorted.at(-1), n: sorted.length }))
}
