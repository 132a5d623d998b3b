// Real machines that give memory back for a while: from a template, over a standby, in a fork, and when the server is killed. And what a fork is given to see of other variables.
import t from 'tap'
import { look, shell, startCounter } from '../helpers/counter.ts'
import { eventually } from '../helpers/eventually.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { startTestServer } from '../helpers/server.ts'

const MIB = 2 ** 20
const ASKED = 48 * MIB

async function main (): Promise<void> {
  // Machines that share their memory give none back.
  const server = await startTestServer(t, { plugins: { instances: { config: { privateMemory: false, templates: { enabled: true, spares: 0, quiet: '100ms' }, reclaim: { floorSize: '64MB' } } } } })
  const image = await push(server, await busyboxImage(), 'reclaim/busybox:latest')
  /** what the guest is without, as its VMM measures it: Linux goes on counting it as its own */
  const given = async (id: string): Promise<number> => (await server.sdk.resources.reclaimMemory({ reclaim_bytes: 0, dry_run: true })).actions.find((action) => action.instance_id === id)?.applied_reclaim_bytes ?? NaN
  const isWhole = async (id: string): Promise<void> => { await eventually('it has everything again', async () => await given(id) === 0) }

  const first = await startCounter(server, image, 'first')
  // The second is made of the template of the first, where there is one by then.
  const second = await startCounter(server, image, 'second')

  await t.test('guests give what was asked for, their programs go on, and 0 gives it back', { timeout: 600_000 }, async (t) => {
    const before = await look(server, first)
    const answer = await server.sdk.resources.reclaimMemory({ reclaim_bytes: ASKED, hold_for: '30m', reason: 'test' })
    t.match(answer, { requested_reclaim_bytes: ASKED, planned_reclaim_bytes: ASKED })
    t.same(answer.actions.map(({ instance_name: name }) => name).sort(), ['first', 'second'])
    for (const id of [first, second]) await eventually('the guest has less', async () => await given(id) === ASKED / 2)
    const after = await look(server, first, before.counter)
    t.match(after, { nonce: before.nonce, bootId: before.bootId })
    await server.sdk.resources.reclaimMemory({ reclaim_bytes: 0 })
    for (const id of [first, second]) await isWhole(id)
  })

  await t.test('one that goes to standby meanwhile, and its fork, have everything when they wake', { timeout: 600_000 }, async (t) => {
    const before = await look(server, first)
    await server.sdk.resources.reclaimMemory({ reclaim_bytes: ASKED, hold_for: '30m' })
    await server.sdk.instances.standby(first)
    t.match((await server.sdk.resources.reclaimMemory({ reclaim_bytes: ASKED / 2, hold_for: '30m' })).actions.map(({ instance_name: name }) => name), ['second'])
    const { id: fork } = await server.sdk.post<{ id: string }>(`/instances/${first}/fork`, { body: { name: 'fork', target_state: 'Running', env: { MINE: 'yes' } } })
    await isWhole(fork)
    t.equal((await shell(server, fork, 'echo $MINE')).trim(), 'yes', 'and a command in it the variables that it was given')
    t.equal((await look(server, fork)).nonce, before.nonce)
    await server.sdk.instances.restore(first)
    await isWhole(first)
    t.equal((await shell(server, first, 'echo "$MINE"')).trim(), '')
    t.equal((await look(server, first)).nonce, before.nonce)
    await server.sdk.instances.delete(fork)
  })

  await t.test('what a server that was killed has taken the next one gives back', { timeout: 600_000 }, async (t) => {
    await server.sdk.resources.reclaimMemory({ reclaim_bytes: ASKED, hold_for: '30m' })
    await eventually('the guest has less', async () => await given(second) > 0)
    const { phase_durations_ms: before } = await server.sdk.instances.get(second)
    await server.kill9()
    await server.restart()
    await isWhole(second)
    t.match(await server.sdk.instances.get(second), { state: 'Running', current_phase: 'running', phase_durations_ms: before })
  })
}

t.setTimeout(1_800_000)
await main()
