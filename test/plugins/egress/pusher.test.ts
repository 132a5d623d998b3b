// What the proxy is told when a VM's policy changes: what differs, or everything where that is not certain. The other side is the proxy's own book of policies.
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import t from 'tap'
import { ControlRefused } from '../../../plugins/egress/control/client.ts'
import { Pusher } from '../../../plugins/egress/policy/pusher.ts'
import type { PolicyChange, PolicyRevision, TracingPolicy, VmPolicy } from '../../../proxy/contract/control.ts'
import { parseChange, parseRevision } from '../../../proxy/parent/parse-revision.ts'
import { OtherBase, PolicyBook, StaleRevision } from '../../../proxy/workers/policy-book.ts'
import { PolicyFault } from '../../../proxy/workers/policy-fault.ts'

type Sent = PolicyRevision | PolicyChange

/** A proxy that answers as the real one does, and what it was told. */
class ProxyDouble {
  book = new PolicyBook()
  readonly sent: Sent[] = []
  takesChanges = true
  takesTracing = true
  /** What happens instead of the next answer; it may have been taken before. */
  fails: ((take: () => void) => void) | undefined

  async take (sent: Sent): Promise<void> {
    await delay(1)
    this.sent.push(sent)
    const take = (): void => {
      if ('base' in sent && !this.takesChanges) throw new ControlRefused(404, 'There is no such route.')
      if ('tracing' in sent && !this.takesTracing) throw new ControlRefused(400, 'tracing: is no field of it', { at: { field: 'tracing' } })
      try {
        if ('base' in sent) this.book.change(parseChange(sent))
        else this.book.replace(parseRevision(sent))
      } catch (error) {
        if (error instanceof PolicyFault) throw new ControlRefused(400, error.message, { at: error.at })
        if (error instanceof StaleRevision || error instanceof OtherBase) throw new ControlRefused(409, error.message, this.book.revision === null ? {} : { revision: this.book.revision })
        throw error
      }
    }
    const fails = this.fails
    this.fails = undefined
    if (fails === undefined) take()
    else fails(take)
  }

  get ids (): string[] { return [...this.book.vms].map(({ id }) => id).toSorted((a, b) => a < b ? -1 : 1) }

  last (): Sent | undefined { return this.sent.at(-1) }
}

function policyOf (id: string, number: number, value = 'a-value'): VmPolicy {
  return { id, address: `10.0.0.${number}`, epoch: '1', mode: 'all', rules: [{ credential: 'KEY', header: 'Authorization', format: '${value}', value, mock: 'mock-KEY' }] }
}

interface Stage { proxy: ProxyDouble, pusher: Pusher, vms: Map<string, VmPolicy>, denied: (ranges: string[]) => void, trace: (tracing?: TracingPolicy) => void, composed: () => number, lines: string[] }

function stage (): Stage {
  const lines: string[] = []
  let tracing: TracingPolicy | undefined
  const proxy = new ProxyDouble()
  const vms = new Map<string, VmPolicy>()
  let ranges = ['10.9.0.0/16']
  let revision = 0
  let composed = 0
  const pusher = new Pusher({
    policies: {
      all: () => { composed += vms.size; return [...vms.values()] },
      one: (id) => { composed++; return vms.get(id) }
    },
    denied: async () => await Promise.resolve(ranges),
    nextRevision: async (above) => {
      revision = Math.max(revision, above) + 1
      return await Promise.resolve(revision)
    },
    put: async (whole) => { await proxy.take(whole) },
    patch: async (change) => { await proxy.take(change) },
    tracing: () => tracing,
    log: pino({}, { write: (line: string) => { lines.push(line) } })
  })
  return { proxy, pusher, vms, denied: (given) => { ranges = given }, trace: (given) => { tracing = given }, composed: () => composed, lines }
}

async function withMany (count = 100): Promise<Stage> {
  const made = stage()
  for (let index = 0; index < count; index++) made.vms.set(`vm-${index}`, policyOf(`vm-${index}`, index))
  made.pusher.enable()
  made.pusher.up(null)
  await made.pusher.push('vm-0', 1000)
  return made
}

t.test('after everything, a proxy is told what differs, and only that is opened for it', async (t) => {
  const { proxy, pusher, vms, denied, composed } = await withMany()
  t.notOk('base' in (proxy.sent[0] ?? {}))
  const before = composed()
  vms.set('vm-7', policyOf('vm-7', 7, 'another-value'))
  await pusher.push('vm-7', 1000)
  t.match(proxy.last(), { base: pusher.revision === undefined ? 0 : pusher.revision - 1, vms: [{ id: 'vm-7' }], gone: [] })
  t.notOk('denied' in (proxy.last() ?? {}), 'what is denied is said when it changes')
  vms.delete('vm-8')
  await pusher.push('vm-8', 1000)
  t.match(proxy.last(), { vms: [], gone: ['vm-8'] })
  vms.delete('vm-8')
  await pusher.push('vm-8', 1000)
  t.same((proxy.last() as PolicyChange).gone, [], 'who is gone goes once')
  denied(['10.8.0.0/16'])
  pusher.request()
  await pusher.push('vm-7', 1000)
  t.same(proxy.book.denied, ['10.8.0.0/16'])
  t.same(proxy.ids, [...vms.keys()].toSorted((a, b) => a < b ? -1 : 1))
  t.ok(composed() - before < 10, `${composed() - before} policies were opened`)
  t.equal(proxy.sent.filter((sent) => !('base' in sent)).length, 1)
})

t.test('a proxy of a version before is told everything, each time, and its successor what differs', async (t) => {
  const { proxy, pusher, vms } = await withMany(3)
  proxy.takesChanges = false
  proxy.sent.length = 0
  for (const value of ['one', 'two']) {
    vms.set('vm-1', policyOf('vm-1', 1, value))
    await pusher.push('vm-1', 1000)
    t.match([...proxy.book.vms].find(({ id }) => id === 'vm-1')?.rules[0], { value })
  }
  t.equal(proxy.sent.filter((sent) => 'base' in sent).length, 1, 'it is asked once')
  proxy.takesChanges = true
  pusher.down()
  pusher.up(proxy.book.revision)
  vms.delete('vm-1')
  await pusher.push('vm-1', 1000)
  t.ok('base' in (proxy.last() ?? {}))
  t.same(proxy.ids, ['vm-0', 'vm-2'])
})

t.test('where it is not certain what the proxy has, it is told everything', async (t) => {
  const { proxy, pusher, vms } = await withMany(3)
  const cases: Record<string, () => void> = {
    'it has begun anew': () => { proxy.book = new PolicyBook(); pusher.down(); pusher.up(null) },
    'somebody else has told it something': () => { proxy.book.replace({ revision: 500, vms: [] }) },
    'it has lost a VM': () => { proxy.book.change({ base: proxy.book.revision ?? 0, revision: (proxy.book.revision ?? 0) + 1, vms: [], gone: ['vm-1'] }) },
    'it has failed over a difference': () => { proxy.fails = () => { throw new ControlRefused(500, 'The request failed.') } },
    'its answer was lost': () => { proxy.fails = (take) => { take(); throw new Error('socket hang up') } },
    'its answer and the next one were lost': () => { proxy.fails = () => { proxy.fails = (take) => { take(); throw new Error('socket hang up') }; throw new ControlRefused(409, 'revision 3 is enforced, and not 2', { revision: 3 }) } }
  }
  for (const [name, happens] of Object.entries(cases)) {
    const before = proxy.sent.length
    happens()
    vms.set('vm-2', policyOf('vm-2', 2, name))
    await pusher.push('vm-2', 5000)
    t.ok(proxy.sent.slice(before).some((sent) => !('base' in sent)), name)
    t.same(proxy.ids, ['vm-0', 'vm-1', 'vm-2'], name)
    t.match([...proxy.book.vms].find(({ id }) => id === 'vm-2')?.rules[0], { value: name })
    await pusher.push('vm-2', 1000)
    t.ok('base' in (proxy.last() ?? {}), `${name}: and then what differs again`)
  }
})

t.test('a VM whose new policy is refused loses the one of before, and nobody else does', async (t) => {
  const { proxy, pusher, vms } = await withMany(3)
  const [rule] = policyOf('vm-1', 1).rules
  vms.set('vm-1', { ...policyOf('vm-1', 1), rules: rule === undefined ? [] : [{ ...rule, header: 'Host' }] })
  vms.set('vm-2', policyOf('vm-2', 2, 'another-value'))
  pusher.touch('vm-2')
  await t.rejects(pusher.push('vm-1', 1000), { code: 'egress_unavailable', message: /belongs to the transport/ })
  t.same(proxy.ids, ['vm-0', 'vm-2'])
  t.match([...proxy.book.vms].find(({ id }) => id === 'vm-2')?.rules[0], { value: 'another-value' })
  vms.set('vm-1', policyOf('vm-1', 1))
  await pusher.push('vm-1', 1000)
  t.same(proxy.ids, ['vm-0', 'vm-1', 'vm-2'])
})

t.test('what changes while a push is on its way is in the next one', async (t) => {
  const { proxy, pusher, vms } = await withMany(3)
  const before = proxy.sent.length
  const pushes = Array.from({ length: 50 }, async (_, index) => {
    vms.set(`new-${index}`, policyOf(`new-${index}`, index + 100))
    await pusher.push(`new-${index}`, 1000)
  })
  await Promise.all(pushes)
  await Promise.all(Array.from({ length: 50 }, async (_, index) => {
    if (index % 2 === 0) vms.delete(`new-${index}`)
    await pusher.push(`new-${index}`, 1000)
  }))
  t.ok(proxy.sent.length - before <= 6, `${proxy.sent.length - before} revisions`)
  t.same(proxy.ids, [...vms.keys()].toSorted((a, b) => a < b ? -1 : 1))
})

t.test('whether traces are taken is told with everything, and what differs leaves it as it is', async (t) => {
  const { proxy, pusher, vms, trace } = await withMany(3)
  for (const tracing of [{ passTraceparent: false }, { passTraceparent: true }, undefined]) {
    trace(tracing)
    await pusher.push('vm-0', 1000)
    t.notOk('base' in (proxy.last() ?? {}))
    t.same(proxy.book.tracing, tracing)
    vms.set('vm-1', policyOf('vm-1', 1, JSON.stringify(tracing) ?? 'none'))
    await pusher.push('vm-1', 1000)
    t.ok('base' in (proxy.last() ?? {}))
    t.same(proxy.book.tracing, tracing)
  }
})

t.test('a proxy from before traces gets the policy without them, and is asked for them anew when another one answers', async (t) => {
  const { proxy, pusher, trace, lines } = await withMany(3)
  proxy.takesTracing = false
  trace({ passTraceparent: false })
  await pusher.push('vm-0', 1000)
  t.equal(proxy.book.tracing, undefined)
  t.match(lines.join(''), /older than this server/)
  proxy.takesTracing = true
  pusher.down()
  pusher.up(null)
  await pusher.push('vm-0', 1000)
  t.same(proxy.book.tracing, { passTraceparent: false })
})
