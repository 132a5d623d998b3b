// Machines that slept, went back or were copied: their connections are dead, their clocks were wrong, and they have what they had before.
import type { Test } from 'tap'
import { waitFor } from '../../../helpers/machine.ts'
import { ORIGINS } from '../origins/contract.ts'
import { checkPlacement, succeed, watched, type Guest } from '../stage.ts'
import { guestOf, type VmStage } from '../vm.ts'
import { eventually } from '../../../helpers/eventually.ts'

const LOG = '/tmp/steady'
/** A client that hears nothing would wait for as long as its own time limit, which Node does not have. */
const NOTICED_MS = 20_000

/** Starts requests over one connection that go on in the background, whatever happens to the machine; once. */
async function startSteady (t: Test, { guest }: VmStage): Promise<void> {
  await succeed(t, guest, `[ -e ${LOG}.pid ] || { nohup node /clients/steady.js https://${ORIGINS.api}/echo/steady "$API_KEY" ${LOG} > /dev/null 2>&1 < /dev/null & echo $! > ${LOG}.pid; }`)
  await more(guest, 0)
}

async function numberIn (guest: Guest): Promise<number> {
  return Number((await guest.run(`grep -c ' 200 ' ${LOG} 2> /dev/null`)).stdout)
}

/** Waits until requests have succeeded beyond a number. The guest has no way to tell it by itself. */
async function more (guest: Guest, than: number): Promise<number> {
  return await eventually('requests succeed', async () => {
    const now = await numberIn(guest)
    return now > than && now
  }, { pollMs: 200, explain: async () => (await guest.run(`tail -n 5 ${LOG}; cat /proc/net/tcp`)).stdout })
}

/** That requests go on, and how long the one took that the sleep broke. */
async function goesOn (t: Test, guest: Guest, before: number, after: string): Promise<void> {
  await more(guest, before + 2)
  const lines = (await succeed(t, guest, `tail -n +${Math.max(before, 1)} ${LOG}`)).trim().split('\n').map((line) => line.split(' '))
  const slowest = Math.max(...lines.map(([, , took]) => Number(took)))
  t.ok(slowest < NOTICED_MS, `P23: after ${after} no request waits for a connection of before; the slowest took ${slowest} ms, ${lines.filter(([, status]) => status !== '200').length} failed`)
}

export async function standby (t: Test, stage: VmStage, whileAsleep: () => Promise<void>): Promise<void> {
  const { server, id, guest } = stage
  await startSteady(t, stage)
  const before = await numberIn(guest)
  await server.sdk.instances.standby(id)
  await whileAsleep()
  const { seen } = await watched(stage, async () => {
    await server.sdk.instances.restore(id)
    await waitFor(server, id, 'Running')
    await goesOn(t, guest, before, 'standby')
  })
  t.ok(seen.length > 0)
  checkPlacement(t, seen, stage.secrets)
}

/** Back in time, in place. @returns the snapshot */
export async function snapshot (t: Test, stage: VmStage): Promise<string> {
  const { server, id, guest } = stage
  const { id: taken } = await server.sdk.instances.snapshots.create(id, { kind: 'Standby', name: 'egress' })
  await waitFor(server, id, 'Running')
  await more(guest, await numberIn(guest) + 2)
  await server.sdk.instances.standby(id)
  await server.sdk.instances.snapshots.restore(taken, { id, target_state: 'Running' })
  await waitFor(server, id, 'Running')
  const { seen } = await watched(stage, async () => await goesOn(t, guest, await numberIn(guest), 'a snapshot'))
  checkPlacement(t, seen, stage.secrets)
  return taken
}

export async function fork (t: Test, stage: VmStage): Promise<void> {
  const { server, id } = stage
  await startSteady(t, stage)
  const copy = await server.sdk.instances.fork(id, { name: 'copy', from_running: true })
  await waitFor(server, copy.id, 'Running')
  const guest = guestOf(server, copy.id)
  t.equal((await succeed(t, guest, 'echo $API_KEY $REAL_KEY')).trim(), 'mock-API_KEY')
  const { seen } = await watched(stage, async () => {
    await goesOn(t, guest, await numberIn(guest), 'a fork')
    await succeed(t, guest, `curl -sS --fail https://${ORIGINS.wild}/echo/copy -o /dev/null`)
  })
  t.ok(seen.some(({ url }) => url === '/echo/copy'))
  checkPlacement(t, seen, stage.secrets)
  await server.sdk.instances.delete(copy.id)
}

/** Certificates are made for hosts as they are first called, and must hold for a guest whose clock is behind. */
export async function clockBehind (t: Test, stage: VmStage): Promise<void> {
  const { seen } = await watched(stage, async () => await succeed(t, stage.guest,
    `now=$(date +%s); date -s @$((now - 72000)) > /dev/null; curl -sS --fail https://${ORIGINS.content}/v2/?signature=of-the-registry -o /dev/null; ended=$?; date -s @$(($(date +%s) + 72000)) > /dev/null; exit $ended`))
  t.ok(seen.some(({ origin }) => origin === 'content'), 'P23: 20 hours behind')
  checkPlacement(t, seen, stage.secrets)
}
