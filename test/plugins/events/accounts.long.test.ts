// Many readers of many changes, over restarts: whoever puts together what it was told has what the table has, and a slow one costs the server nothing.
import { setTimeout as delay } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { ADMIN_KEY } from '../../core/bare-app.ts'
import { readEvents } from './reader.ts'
import { startWithThings, type ThingsApp } from './things.ts'

const CHANGES = 10_000
const READERS = 50
const THINGS = 200
/** what makes an event heavy */
const TAGS = { note: 'x'.repeat(250) }
const LAST = 'the-last-one'

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

/** What is held once all garbage is gone, bytes. */
function held (): number {
  collect()
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** How a reader reads: what it does after an event, given how many it has had. */
type Pace = (count: number) => Promise<void> | undefined

t.test('10,000 changes, 50 readers, slow ones and some that stand still, and two restarts: each account equals the rows', async (t) => {
  const config = { maxEvents: 100_000 }
  let run: ThingsApp = await startWithThings(t, { config })
  let url = run.app.address()
  const server = { dataDir: run.dataDir, listen: '127.0.0.1:0', apiKey: ADMIN_KEY, metrics: { enabled: false } }
  const restart = async (): Promise<void> => {
    await run.app.stop()
    run = await startWithThings(t, { config, server })
    url = run.app.address()
  }
  const first = await fetch(`${url}/events/snapshot`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } })
  const { id: begin }: { id: string } = JSON.parse(await first.text())

  let goOn = (): void => {}
  const stood = new Promise<void>((resolve) => { goOn = resolve })
  let isStanding = false
  const paces: Pace[] = [() => undefined, (count) => count % 100 === 0 ? delay(10) : undefined, () => isStanding ? stood : undefined]
  let told = 0

  const follow = async (pace: Pace): Promise<Map<string, string>> => {
    const account = new Map<string, string>()
    let after: string | undefined = begin
    let count = 0
    const isDone = (): boolean => account.has(LAST)
    while (!isDone()) {
      // A server that ends cuts its streams off.
      await readEvents(`${url}/events`, ADMIN_KEY, after, async ({ type, id, data }) => {
        if (id !== undefined) after = id
        if (data === undefined) return false
        if (type === 'thing.deleted') account.delete(data.id)
        else account.set(data.id, data.status)
        told++
        await pace(++count)
        return isDone()
      }).catch(async () => { await delay(20) })
    }
    return account
  }
  const accounts = Promise.all(Array.from({ length: READERS }, async (_, index) => await follow(paces[index % paces.length] ?? (() => undefined))))

  let made = 0
  const change = async (count: number): Promise<void> => {
    for (const end = made + count; made < end; made++) {
      const id = `thing-${made % THINGS}`
      const round = Math.floor(made / THINGS)
      if (round % 7 === 0) await run.things.make(id, TAGS)
      else if (round % 7 === 6) await run.things.remove(id)
      else await run.things.set(id, String(made))
    }
  }
  await change(CHANGES * 0.2)
  await restart()
  isStanding = true
  await change(CHANGES * 0.1)
  const early = held()
  await change(CHANGES * 0.5)
  const grown = held() - early
  // Kept for those who stand still it would be three times as much.
  t.ok(grown < 15_000_000, `${(grown / 1e6).toFixed(1)} MB more are held after ${CHANGES * 0.5} further changes`)
  await restart()
  await change(CHANGES * 0.2 - 1)
  await run.things.make(LAST)
  isStanding = false
  goOn()
  const rows = new Map((await run.things.all()).map(({ id, status }) => [id, status]))
  const all = await accounts
  t.equal(all.length, READERS)
  for (const [index, account] of all.entries()) t.same([...account].sort(), [...rows].sort(), `reader ${index}`)
  t.equal(told, CHANGES * READERS, 'each was told of each change once')
  const { user, system } = process.cpuUsage()
  t.comment(`${((user + system) / 1e6).toFixed(1)} s of processor time`)
})
