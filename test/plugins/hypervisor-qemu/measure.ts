// Measures what the choices in args.ts cost, from the start of QEMU to the guest's first word, for each variant in turn: the time that
// passes, and the processor time that QEMU takes, which other work on the machine disturbs less.
// usage: node dist/test/plugins/hypervisor-qemu/measure.js [ROUNDS]
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { VmSpec } from '../../../core/library/hypervisor.ts'
import { buildArgs, defaultCpuModel } from '../../../plugins/hypervisor-qemu/args.ts'
import { guest, makeMachines } from './machine.ts'
import { openAgent } from './open-agent.ts'

interface Figures { readonly wallMs: number, readonly cpuMs: number }
// of /proc: USER_HZ is 100 on every Linux that Node runs on
const TICK_MS = 10

type Change = (args: readonly string[]) => readonly string[]

/** Replaces text in every argument. */
const swap = (from: string, to: string): Change => (args) => args.map((arg) => arg.replace(from, to))
/** Replaces the memory object. */
const memory = (type: string, more: object): Change => (args) => args.map((arg) => arg.includes('memory-backend-ram')
  ? JSON.stringify({ ...JSON.parse(arg), 'qom-type': type, ...more })
  : arg)
const cpu = (model: string): Change => swap(defaultCpuModel('tcg'), model)

const VARIANTS: Readonly<Record<string, Change>> = {
  'as the driver starts it': (args) => args,
  'q35 with hpet, usb, smbus, sata': swap(',hpet=off,usb=off,smbus=off,sata=off', ''),
  'without i8042 and smm': swap('q35,', 'q35,i8042=off,vmport=off,smm=off,'),
  'qboot in place of SeaBIOS': (args) => [...args, '-bios', 'qboot.rom'],
  'cpu qemu64': cpu('qemu64'),
  'cpu Nehalem': cpu('Nehalem,+rdrand'),
  'cpu max': cpu('max'),
  'memory in a memfd, shared': memory('memory-backend-memfd', { share: true }),
  'memory in a file, shared': memory('memory-backend-file', { share: true, 'mem-path': 'memory' }),
  'translation cache 64 MiB': swap('tb-size=256', 'tb-size=64'),
  'virtio-serial with 31 ports': swap(',max_ports=4', ''),
  'with the kernel\'s timer check': swap(' no_timer_check', ''),
  'without the sandbox': (args) => args.filter((_, index) => args[index] !== '-sandbox' && args[index - 1] !== '-sandbox')
}

async function measure (make: (folder: string) => Promise<Pick<VmSpec, 'kernel' | 'disks' | 'vcpus' | 'memoryBytes'>>, change: Change): Promise<Figures> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-measure-'))
  const files = { vmm: join(directory, 'vmm'), output: join(directory, 'output'), report: join(directory, 'report') }
  for (const file of Object.values(files)) await writeFile(file, '')
  const spec = { id: 'measure', directory, files, ...await make(directory) }
  const args = change(buildArgs(spec, { accelerator: 'tcg', cpuModel: defaultCpuModel('tcg'), translationCacheMib: 256 }))
  const start = performance.now()
  const child = spawn('qemu-system-x86_64', args, { cwd: directory, stdio: ['ignore', 'ignore', 'inherit'] })
  try {
    const link = guest.link(await openAgent(directory))
    await link.hello
    const wallMs = performance.now() - start
    const stat = await readFile(`/proc/${child.pid}/stat`, 'utf8')
    const [user = 0, system = 0] = stat.slice(stat.lastIndexOf(')') + 2).split(' ').slice(11, 13).map(Number)
    link.close()
    return { wallMs, cpuMs: (user + system) * TICK_MS }
  } catch (error) {
    throw new Error(`the guest did not come up: ${await readFile(files.vmm, 'utf8')}`, { cause: error })
  } finally {
    child.kill('SIGKILL')
    await once(child, 'exit')
    await rm(directory, { recursive: true })
  }
}

const rounds = Number(process.argv[2] ?? 5)
const machines = await makeMachines()
const times = new Map<string, Figures[]>()
for (let round = 0; round < rounds; round++) {
  for (const [name, change] of Object.entries(VARIANTS)) times.set(name, [...times.get(name) ?? [], await measure(machines.make, change)])
}
await machines.remove()
for (const [name, all] of times) {
  for (const figure of ['wallMs', 'cpuMs'] as const) {
    const sorted = all.map((one) => Math.round(one[figure])).sort((a, b) => a - b)
    console.log(JSON.stringify({ name, figure, median: sorted[Math.floor(sorted.length / 2)], min: sorted[0], max: sorted.at(-1), n: sorted.length }))
  }
}
