// What the overview says of instances is kept between answers, and follows each change.
import t from 'tap'
import { KnownClaims } from '../../../plugins/resources/known-claims.ts'
import { OverviewJson } from '../../../plugins/resources/overview-json.ts'
import { allocationOf, overviewOf } from '../../../plugins/resources/overview.ts'
import { claimOf } from './claims.ts'

const CAPACITY = { capacity: 10, limit: 10, ratio: 1, source: 'detected' } as const
const LIMITS = { cpu: CAPACITY, memory: CAPACITY, disk: CAPACITY }
const USAGE = { imageBytes: 1, registryBytes: 2 }
const BESIDE = { cgroups: { active: false, reason: 'none here' }, gpus: null, kept: { vms: 0, memoryBytes: 0 } }

t.test('of the network the direction is shown of which more is taken, by its limit', async (t) => {
  const of = (limit: number) => ({ ...CAPACITY, capacity: limit, limit })
  const shown = (limits: { readonly download?: number, readonly upload?: number }, downloadBps: number, uploadBps: number): unknown => {
    const { totals } = new KnownClaims([claimOf('a', { downloadBps, uploadBps })])
    const given = Object.fromEntries(Object.entries(limits).map(([direction, limit]) => [direction, of(limit)]))
    const { effective_limit: limit, allocated, available, source } = overviewOf({ ...LIMITS, ...given }, USAGE, totals, BESIDE).network
    return [limit, allocated, available, source]
  }
  t.same(shown({ download: 250, upload: 25 }, 10, 25), [25, 25, 0, 'detected'], 'the narrow one is full')
  t.same(shown({ download: 250, upload: 25 }, 100, 5), [250, 100, 150, 'detected'])
  t.same(shown({ download: 250, upload: 25 }, 20, 5), [25, 5, 20, 'detected'], 'although more is taken of the other')
  t.same(shown({ download: 25, upload: 250 }, 0, 0), [250, 0, 250, 'detected'], 'the wide one where both are equally full')
  t.same(shown({ download: 250, upload: 0 }, 10, 0), [0, 0, 0, 'detected'], 'a direction of which there is nothing is full')
  t.same(shown({ upload: 250 }, 1000, 10), [250, 10, 240, 'detected'], 'a direction without a limit is never full')
  t.same(shown({ download: 250 }, 0, 1000), [250, 0, 250, 'detected'])
  t.same(shown({}, 10, 25), [0, 25, 0, 'unknown'])
})

t.test('each answer is the whole overview, with the instances as they are by then', async (t) => {
  const json = new OverviewJson()
  const known = new KnownClaims([claimOf('b'), claimOf('a', { name: 'with "quotes" and ü' }), claimOf('v', { kind: 'volume' })])
  const expect = async (text: string): Promise<string> => {
    const { instances, totals } = known
    const overview = overviewOf(LIMITS, USAGE, totals, BESIDE)
    const { bytes, tag } = await json.of(overview, instances)
    t.same(JSON.parse(bytes.toString()), { ...overview, allocations: instances.map(allocationOf) }, text)
    t.equal((await json.of(overview, known.instances)).tag, tag, 'nothing has changed')
    return tag
  }
  const changes = [
    () => { known.put(claimOf('c')) },
    () => { known.rest('a') },
    () => { known.put(claimOf('b', { name: 'other' })) },
    () => { known.remove('instance', 'a') },
    () => { known.remove('volume', 'v') },
    () => { known.replaceAll('instance', []) }
  ]
  const tags = new Set([await expect('two instances and a volume')])
  for (const change of changes) {
    change()
    tags.add(await expect(String(change)))
  }
  t.equal(tags.size, 7, 'each has another tag')
  t.not((await json.of(overviewOf(LIMITS, { ...USAGE, imageBytes: 3 }, known.totals, BESIDE), known.instances)).tag, [...tags].at(-1), 'so has another overview of the same instances')
})
