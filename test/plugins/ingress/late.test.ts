// Requests that wait for an instance to wake while the rules of their host change.
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { deferred } from '../../../core/jobs/deferred.ts'
import { eventually } from '../../helpers/eventually.ts'
import { setStage, skipReason } from './stage.ts'

const SITE = { match: { hostname: 'web.test' }, target: { instance: 'web', port: 8080 } }
const HEADER = 'X-Preview-Key'
const VALUE = 'k'.repeat(40)

for (const [what, next, status] of [
  ['a rule that is deleted', undefined, 404],
  ['a rule that gets a header', { ...SITE, request_header_auth: { header: HEADER, value: VALUE } }, 403]
] as const) {
  t.test(`${what} while a request waits holds for that request, and for those that come after it`, { skip: skipReason() }, async (t) => {
    const stage = await setStage(t)
    await stage.instance('web', 'Standby')
    const { ingresses } = await stage.server()
    await ingresses.create({ name: 'site', rules: [SITE] })
    const woken = deferred()
    const wake = stage.wake.bind(stage)
    let waiting = 0
    stage.wake = async (id) => {
      waiting++
      await woken.promise
      return await wake(id)
    }
    const answer = stage.ask({})
    await eventually('it waits', () => waiting > 0)
    await ingresses.delete('site')
    if (next !== undefined) await ingresses.create({ name: 'site', rules: [next] })
    await eventually('earlier answers are forgotten', () => !ingresses.isSettling)
    woken.resolve()
    t.equal((await answer).status, status)
    // What nginx keeps of that answer is written by then.
    await delay(50)
    t.equal((await stage.ask({})).status, status)
    if (next !== undefined) t.equal((await stage.ask({ headers: { [HEADER]: VALUE } })).status, 200)
  })
}

t.test('a request that waits is served when other rules change meanwhile', { skip: skipReason() }, async (t) => {
  const stage = await setStage(t)
  await stage.instance('web', 'Standby')
  const { ingresses } = await stage.server()
  await ingresses.create({ name: 'site', rules: [SITE] })
  const woken = deferred()
  const wake = stage.wake.bind(stage)
  let waiting = 0
  stage.wake = async (id) => {
    waiting++
    await woken.promise
    return await wake(id)
  }
  const answer = stage.ask({})
  await eventually('it waits', () => waiting > 0)
  await ingresses.create({ name: 'other', rules: [{ ...SITE, match: { hostname: 'other.test' } }] })
  woken.resolve()
  t.equal((await answer).status, 200)
})
