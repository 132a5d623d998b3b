// The share of work that each key may have.
import t from 'tap'
import { resumeShares } from '../../../core/jobs/resume-shares.ts'
import { createShares, type Owner, type Shares } from '../../../core/jobs/shares.ts'

const [ONE, OTHER, THIRD]: readonly Owner[] = ['one', 'other', 'third'].map((name) => ({ id: `id of ${name}`, name }))

function start ({ perOwner = 2, inAll = 3 } = {}): { readonly shares: Shares, readonly over: Set<string>, readonly asked: string[] } {
  const over = new Set<string>()
  const asked: string[] = []
  const shares = createShares({
    perOwner, inAll,
    isOver: async (id) => { asked.push(id); return over.has(id) },
    refuse: (whose, most) => new Error(`${whose} has ${most}`)
  })
  return { shares, over, asked }
}

const begin = async (shares: Shares, owner: Owner | undefined, id: string): Promise<string> => await shares.begin(owner ?? null, async () => id, (begun) => begun)

t.test('a key has its share and no more, others have theirs, and what is over makes room', async (t) => {
  const { shares, over, asked } = start()
  await begin(shares, ONE, 'a')
  await begin(shares, ONE, 'b')
  t.same(asked, [], 'nobody is asked while there is room')
  await t.rejects(begin(shares, ONE, 'c'), { message: 'the key "one" has 2' })
  await t.rejects(shares.check(ONE ?? null), { message: 'the key "one" has 2' })
  await begin(shares, OTHER, 'd')
  over.add('a')
  await begin(shares, ONE, 'c')
  await t.rejects(begin(shares, ONE, 'e'), { message: 'the key "one" has 2' })
})

t.test('all together have no more than the server bears', async (t) => {
  const { shares, over } = start()
  for (const [owner, id] of [[ONE, 'a'], [ONE, 'b'], [OTHER, 'c']] as const) await begin(shares, owner, id)
  await t.rejects(begin(shares, THIRD, 'd'), { message: 'this server has 3' })
  over.add('b')
  await begin(shares, THIRD, 'd')
})

t.test('what begins counts from its first moment, and not when it fails', async (t) => {
  const { shares } = start()
  let go = (): void => {}
  const slow = new Promise<void>((resolve) => { go = resolve })
  const both = ['a', 'b'].map(async (id) => await shares.begin(ONE ?? null, async () => { await slow; throw new Error(id) }, () => id))
  const refused = begin(shares, ONE, 'c')
  await t.rejects(refused, { message: 'the key "one" has 2' })
  go()
  t.match(await Promise.allSettled(both), [{ status: 'rejected' }, { status: 'rejected' }])
  await begin(shares, ONE, 'c')
})

t.test('what an earlier server began counts for its key, and for the server alone when the key has ended or is not known', async (t) => {
  const { shares, over } = start({ perOwner: 2, inAll: 5 })
  const current = async (id: string): Promise<{ readonly id: string, readonly name: string, readonly scopes: string[] } | undefined> => id === 'lasting' ? { id: ONE?.id ?? '', name: 'one', scopes: [] } : undefined
  await resumeShares(shares, { current }, [{ id: 'a', keyId: 'lasting' }, { id: 'b', keyId: 'lasting' }, { id: 'c', keyId: 'ended' }, { id: 'd', keyId: null }])
  await t.rejects(begin(shares, ONE, 'e'), { message: 'the key "one" has 2' })
  await begin(shares, OTHER, 'e')
  await t.rejects(begin(shares, OTHER, 'f'), { message: 'this server has 5' })
  over.add('a')
  await begin(shares, ONE, 'f')
})
