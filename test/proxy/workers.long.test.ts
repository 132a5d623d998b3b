// The proxy as several processes: what the end of one costs, and what a policy means while one ends or hangs.
import t, { type Test } from 'tap'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { TLSSocket } from 'node:tls'
import { eventually } from '../helpers/eventually.ts'
import { processTree } from '../helpers/process-tree.ts'
import { Blame } from '../../proxy/workers/blame.ts'
import { ask, closesWithin, exchangeBytes, openPlain, openTls } from './helpers/guest.ts'
import { loopback } from './helpers/network.ts'
import { vmPolicy } from './helpers/proxy.ts'
import { setStage, type Stage } from './helpers/setup.ts'
import { endWorkerOf, figure, workerOf, workersOf } from './helpers/workers.ts'

const HOST = 'api.good.test'
const [ONE, OTHER, THIRD] = [loopback(10), loopback(11), loopback(12)]

async function served (stage: Stage, socket: TLSSocket): Promise<void> {
  const answer = await exchangeBytes(socket, `GET / HTTP/1.1\r\nHost: ${stage.host(HOST)}\r\n\r\n`, text => text.includes('hello from the origin'))
  if (!answer.startsWith('HTTP/1.1 200 ')) throw new Error(`it was answered: ${answer}`)
}

/** Two VMs of different workers, a served connection of each, and the worker of the first. */
async function neighbours (t: Test): Promise<{ stage: Stage, own: TLSSocket, foreign: TLSSocket, worker: Awaited<ReturnType<typeof workerOf>> }> {
  const stage = await setStage(t, { workers: 2 })
  await stage.origin(100)
  await stage.proxy.policy(vmPolicy(ONE, [{}]), vmPolicy(OTHER, [{}]))
  const [own, foreign] = [await openTls(stage.proxy, ONE, HOST), await openTls(stage.proxy, OTHER, HOST)]
  for (const socket of [own, foreign]) await served(stage, socket)
  return { stage, own, foreign, worker: await workerOf(stage.proxy, ONE) }
}

t.test('a worker that ends takes the connections of its own VMs with it; others keep theirs, and new ones wait for its successor', async (t) => {
  const { stage, own, foreign, worker } = await neighbours(t)
  t.not(worker.pid, (await workerOf(stage.proxy, OTHER)).pid, 'VMs are divided between workers')
  // A connection that is handed to a worker in the moment of its end goes with it: the parent has to have noticed.
  await endWorkerOf(stage.proxy, ONE, 'SIGKILL')
  t.ok(await closesWithin(own, 10_000))
  await served(stage, await openTls(stage.proxy, ONE, HOST))
  await served(stage, foreign)
  t.not((await workerOf(stage.proxy, ONE)).pid, worker.pid)
  t.same((await stage.proxy.audited(`vm-${OTHER}`, entries => entries.length >= 2)).map(({ seq, status }) => [seq, status]), [[1, 200], [2, 200]])
  t.equal(await figure(stage.proxy, 'berth_egress_worker_ends_total{worker="0"}') + await figure(stage.proxy, 'berth_egress_worker_ends_total{worker="1"}'), 1)
})

t.test('figures of all workers come together, and outlive the worker that counted', async (t) => {
  const stage = await setStage(t, { workers: 2 })
  await stage.origin(100)
  await stage.proxy.policy(vmPolicy(ONE, [{}]), vmPolicy(OTHER, [{}]))
  for (const guest of [ONE, OTHER]) await ask(stage.proxy, guest, { name: HOST, headers: { host: stage.host(HOST) } })
  const requests = async () => await figure(stage.proxy, 'berth_egress_requests_total{protocol="http/1.1"}')
  await eventually('two requests are counted', async () => await requests() === 2)
  await endWorkerOf(stage.proxy, ONE, 'SIGKILL')
  await ask(stage.proxy, ONE, { name: HOST, headers: { host: stage.host(HOST) } })
  await eventually('the third is counted with them', async () => await requests() === 3)
  t.equal(await figure(stage.proxy, 'berth_egress_injected_total'), 3)
})

t.test('a worker says for how long its event loop was held up, until that is read', async (t) => {
  const { stage, worker } = await neighbours(t)
  const stall = async () => await figure(stage.proxy, `berth_egress_worker_stall_seconds{worker="${worker.name}"}`)
  process.kill(worker.pid, 'SIGSTOP')
  await new Promise(resolve => setTimeout(resolve, 1000))
  process.kill(worker.pid, 'SIGCONT')
  t.ok(await eventually('it is said', async () => await stall() >= 0.9))
  await eventually('it is forgotten', async () => await stall() < 0.9)
})

t.test('a policy is acknowledged when it is in force in every worker: one that hangs is ended for it', async (t) => {
  const { stage, own, foreign, worker } = await neighbours(t)
  process.kill(worker.pid, 'SIGSTOP')
  await stage.proxy.policy(vmPolicy(OTHER, [{}]))
  t.ok(await closesWithin(own, 10_000), 'what the hanging worker held is closed')
  await served(stage, foreign)
  t.match(stage.proxy.output(), /a worker hangs and is ended/)
  t.ok(await closesWithin(await openPlain(stage.proxy, ONE, stage.proxy.ports.https), 10_000), 'and nothing new gets in')
})

t.test('a VM whose traffic keeps ending its worker is cut off until it starts anew, and says so; its neighbour is served', async (t) => {
  const stage = await setStage(t, { workers: 2 })
  await stage.origin(100)
  // Both of one worker: there are two.
  await stage.proxy.policy(vmPolicy(ONE, [{}]), vmPolicy(THIRD, [{}]))
  await ask(stage.proxy, THIRD, { name: HOST, headers: { host: stage.host(HOST) } })
  for (let times = 0; times < 3; times++) {
    const socket = await openTls(stage.proxy, ONE, HOST)
    await served(stage, socket)
    // As a fault in the program itself would end it.
    await endWorkerOf(stage.proxy, ONE, 'SIGSEGV')
    t.ok(await closesWithin(socket, 10_000))
  }
  t.ok(await closesWithin(await openPlain(stage.proxy, ONE, stage.proxy.ports.https), 10_000), 'it has no way out')
  const entries = await stage.proxy.audited(`vm-${ONE}`, found => found.some(({ reason }) => reason === 'cut_off'))
  t.equal(entries.at(-1)?.reason, 'cut_off')
  t.match(stage.proxy.output(), new RegExp(`"vm":"vm-${ONE}"`))
  t.equal(await figure(stage.proxy, 'berth_egress_cut_off_vms'), 1)
  t.match(await ask(stage.proxy, THIRD, { name: HOST, headers: { host: stage.host(HOST) } }), { status: 200 })
  await stage.proxy.policy(vmPolicy(ONE, [{}], { epoch: '2' }), vmPolicy(THIRD, [{}]))
  t.match(await ask(stage.proxy, ONE, { name: HOST, headers: { host: stage.host(HOST) } }), { status: 200 })
})

t.test('of many VMs that are always busy, the one whose traffic ends workers is found', async (t) => {
  const vms = Array.from({ length: 16 }, (_, index) => `vm-${index}`)
  for (const culprit of vms) {
    const blame = new Blame()
    let apart: ReadonlySet<string> = new Set()
    let found: string | undefined
    let ends = 0
    for (; found === undefined && ends < 20; ends++) {
      const isApart = apart.has(culprit)
      const verdict = blame.ended(isApart ? 'apart' : '0', new Set(vms.filter(vm => apart.has(vm) === isApart)), ends * 100, () => '0')
      if (verdict === undefined) continue
      if ('cut' in verdict) found = verdict.cut
      else apart = verdict.apart
    }
    t.equal(found, culprit)
    t.ok(ends <= 3 + 4, `${ends} ends`)
  }
  const blame = new Blame()
  for (let minute = 0; minute < 10; minute++) t.equal(blame.ended('0', new Set(['a']), minute * 60_000, () => '0'), undefined, 'once a minute is nobody\'s fault')
})

t.test('one process more than there are workers is kept ready, and takes the place of a worker that ends', async (t) => {
  const stage = await setStage(t)
  const worker = await workerOf(stage.proxy, stage.guest)
  const parent = stage.proxy.process.pid ?? 0
  for (let own = worker.pid, count = 0; count < 2; count++) {
    const spare = await eventually('there is one', async () => processTree(parent).find(pid => pid !== parent && pid !== own))
    await endWorkerOf(stage.proxy, stage.guest, 'SIGKILL')
    const next = await workerOf(stage.proxy, stage.guest)
    t.equal(next.pid, spare)
    own = next.pid
  }
})

t.test('workers end with their parent, whatever ends it', async (t) => {
  const stage = await setStage(t, { workers: 2 })
  await workerOf(stage.proxy, ONE)
  const workers = await workersOf(stage.proxy)
  const exited = once(stage.proxy.process, 'exit')
  stage.proxy.process.kill('SIGKILL')
  await exited
  const isThere = async (pid: number) => await readFile(`/proc/${pid}/stat`, 'utf8').then(text => !text.includes(') Z '), () => false)
  await eventually('the workers end', async () => !(await Promise.all(workers.map(async ({ pid }) => await isThere(pid)))).includes(true))
  t.ok(workers.length >= 2)
})
