// Measures what a network device costs a boot, and what it carries, for each variant in turn. Root only.
// usage: node dist/test/plugins/hypervisor-qemu/measure-network.js [ROUNDS [SECONDS]]
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { VmNetwork, VmSpec } from '../../../core/library/hypervisor.ts'
import { buildArgs, defaultCpuModel } from '../../../plugins/hypervisor-qemu/args.ts'
import type { GuestLink } from '../../../plugins/guest/contract.ts'
import { workload } from '../../contracts/hypervisor/fixture.ts'
import { guest, makeMachines, type Machines } from './machine.ts'
import { openAgent } from './open-agent.ts'

const NAMESPACE = 'berth-measure'
const GATEWAY = '10.98.0.1'
const IP = '10.98.0.2'
const NETWORK: VmNetwork = { namespace: `/run/netns/${NAMESPACE}`, tap: 'measured', mac: '02:00:00:00:00:01' }
// of /proc: USER_HZ is 100 on every Linux that Node runs on
const TICK_MS = 10

type Change = ((arg: string) => string) | 'none'
const device = (more: string): Change => (arg) => arg.replace('netdev=network', `netdev=network,${more}`)

const VARIANTS: Readonly<Record<string, Change>> = {
  'no network device': 'none',
  'as the driver starts it': (arg) => arg,
  'receive queue of 1024': device('rx_queue_size=1024'),
  'without offloads': device('csum=off,guest_csum=off,gso=off,host_tso4=off,host_tso6=off,guest_tso4=off,guest_tso6=off'),
  'without merged buffers': device('mrg_rxbuf=off'),
  'sent by a timer': device('tx=timer')
}

const ip = (...args: string[]): string => execFileSync('ip', args, { encoding: 'utf8' })
const inside = (...args: string[]): string[] => [`--net=${NETWORK.namespace}`, 'busybox', ...args]

/** Bytes that have passed the TAP: received by the guest and sent by it. */
function passed (): readonly [number, number] {
  const [link]: Array<{ stats64: Record<'rx' | 'tx', { bytes: number }> }> = JSON.parse(ip('-n', NAMESPACE, '-json', '-s', 'link', 'show', NETWORK.tap))
  if (link === undefined) throw new Error('ip shows the TAP')
  return [link.stats64.tx.bytes, link.stats64.rx.bytes]
}

/** Processor time of a process. */
async function cpuMsOf (pid: number | undefined): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  const [user = 0, system = 0] = stat.slice(stat.lastIndexOf(')') + 2).split(' ').slice(11, 13).map(Number)
  return (user + system) * TICK_MS
}

/** To the guest, and from it: MB per second that passes, and MB per second of QEMU's processor time, which other work on the machine disturbs less. */
async function carry (link: GuestLink, pid: number | undefined, seconds: number): Promise<Record<string, number>> {
  const shell = (script: string) => link.exec({ argv: ['/bin/busybox', 'sh', '-c', script] })
  const sink = shell('exec busybox nc -l -p 7000 >/dev/null')
  await new Promise((resolve) => setTimeout(resolve, 500))
  const before = passed()
  const cpuBefore = await cpuMsOf(pid)
  await once(spawn('nsenter', inside('timeout', String(seconds), 'busybox', 'nc', IP, '7000'), { stdio: [openSync('/dev/zero', 'r'), 'ignore', 'inherit'] }), 'exit')
  const between = passed()
  const cpuBetween = await cpuMsOf(pid)
  sink.cancel()
  // Its input stays open: at its end it would close the connection.
  const server = spawn('nsenter', inside('nc', '-l', '-p', '7001'), { stdio: ['pipe', 'ignore', 'inherit'] })
  await new Promise((resolve) => setTimeout(resolve, 500))
  const start = passed()
  const cpuStart = await cpuMsOf(pid)
  await shell(`exec busybox timeout ${seconds} busybox nc ${GATEWAY} 7001 </dev/zero`).result
  const after = passed()
  const cpuAfter = await cpuMsOf(pid)
  server.kill('SIGKILL')
  const [to, from] = [(between[0] - before[0]) / 1e6, (after[1] - start[1]) / 1e6]
  return {
    toGuestMBps: to / seconds, toGuestMBperCpuS: to / (cpuBetween - cpuBefore) * 1000,
    fromGuestMBps: from / seconds, fromGuestMBperCpuS: from / (cpuAfter - cpuStart) * 1000
  }
}

async function measure (make: Machines['make'], change: Change, seconds: number): Promise<Record<string, number>> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-measure-'))
  const files = { vmm: join(directory, 'vmm'), output: join(directory, 'output'), report: join(directory, 'report') }
  for (const file of Object.values(files)) await writeFile(file, '')
  const spec: VmSpec = { id: 'measure', directory, files, ...await make(directory), ...change === 'none' ? {} : { network: NETWORK } }
  const args = buildArgs(spec, { accelerator: 'tcg', cpuModel: defaultCpuModel('tcg'), translationCacheMib: 256 }).map((arg) => change === 'none' ? arg : change(arg))
  const start = performance.now()
  const [file, ...before] = change === 'none' ? ['prlimit', '--core=0:0'] : ['nsenter', `--net=${NETWORK.namespace}`, 'prlimit', '--core=0:0']
  const child = spawn(file ?? '', [...before, 'qemu-system-x86_64', ...args], { cwd: directory, stdio: ['ignore', 'ignore', 'inherit'] })
  try {
    const link = guest.link(await openAgent(directory))
    await link.hello
    const boot = { wallMs: performance.now() - start, cpuMs: await cpuMsOf(child.pid) }
    if (change === 'none') return boot
    await link.run({ ...workload('wait'), network: { mac: NETWORK.mac, address: `${IP}/24`, gateway: GATEWAY } })
    const carried = await carry(link, child.pid, seconds)
    link.close()
    return { ...boot, ...carried }
  } finally {
    child.kill('SIGKILL')
    await once(child, 'exit')
    await rm(directory, { recursive: true })
  }
}

const [rounds = 5, seconds = 2] = process.argv.slice(2).map(Number)
const machines = await makeMachines()
ip('netns', 'add', NAMESPACE)
try {
  for (const words of ['link set lo up', 'link add bridge type bridge', `address add ${GATEWAY}/24 dev bridge`, 'link set bridge up', `tuntap add ${NETWORK.tap} mode tap`, `link set ${NETWORK.tap} master bridge up`]) ip('-n', NAMESPACE, ...words.split(' '))
  const found = new Map<string, Array<Record<string, number>>>()
  for (let round = 0; round < rounds; round++) {
    for (const [name, change] of Object.entries(VARIANTS)) found.set(name, [...found.get(name) ?? [], await measure(machines.make, change, seconds)])
  }
  for (const [name, all] of found) {
    for (const figure of Object.keys(all[0] ?? {})) {
      const sorted = all.map((one) => Math.round(one[figure] ?? 0)).sort((a, b) => a - b)
      console.log(JSON.stringify({ name, figure, median: sorted[Math.floor(sorted.length / 2)], min: sorted[0], max: sorted.at(-1), n: sorted.length }))
    }
  }
} finally {
  ip('netns', 'delete', NAMESPACE)
  await machines.remove()
}
