// From inside of a real machine, against real origins: they get the credentials exactly where the rules say, also when values change and machines sleep, and nothing
// of the guest ever holds one. Run by secrets.long.test.ts in a network namespace of its own.
import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { missingPrivileges } from '../../../plugins/networking/privileges.ts'
import { skipWithout } from '../../../setup/structure/deleted.ts'
import { nowhere, type Searched } from './cases/nowhere.ts'
import { rotation } from './cases/rotation.ts'
import { runCases } from './cases/run.ts'
import { clockBehind, fork, snapshot, standby } from './cases/waking.ts'
import { nodeClients, placement, usualClients } from './cases/web.ts'
import { pushDebianImage } from './image.ts'
import { succeed } from './stage.ts'
import { createVm, openWorld, type VmStage } from './vm.ts'

const reason = missingPrivileges()
const withoutSnapshots = skipWithout('snapshots')
if (reason === undefined) await main()
else t.plan(0, reason)

async function main (): Promise<void> {
  const world = await openWorld(t)
  const marker = `marker${randomBytes(16).toString('hex')}`
  let stage = await createVm(world, await pushDebianImage(world.server), 'all', marker)
  const searched = (): Searched => ({ world, stage, marker })
  t.comment(`up after ${Math.round(performance.now())} ms`)
  await runCases({
    'the guest sees mocks and its own variables, and no source of a credential': async (t) => await environment(t, stage, marker),
    'A11, A34, A42: credentials go to matching hosts over TLS alone, and mocks anywhere else are text': async (t) => await placement(t, stage),
    'A46: a value that changes while a hundred requests are under way': async (t) => { stage = await rotation(t, stage) },
    'A47: no secret in the guest\'s memory, on disk, in logs, answers or processes, after clients of all kinds': async (t) => {
      await usualClients(t, stage)
      await nodeClients(t, stage)
      await nowhere(t, searched(), 'running')
    },
    'P23, A47: requests go on after standby, whose image holds no secret': async (t) => await standby(t, stage, async () => await nowhere(t, searched(), 'asleep')),
    'P23: a guest whose clock is 20 hours behind': async (t) => await clockBehind(t, stage),
    'P23: requests go on in a machine that went back to a snapshot': async (t) => withoutSnapshots === false ? await snapshot(t, stage) : t.plan(0, withoutSnapshots),
    'P23: and in a fork, which has the same credentials': async (t) => await fork(t, stage),
    'A47: nothing that all of this left holds a secret, as snapshots': async (t) => await nowhere(t, searched(), 'running')
  })
}

async function environment (t: Test, { guest, server, id, secrets }: VmStage, marker: string): Promise<void> {
  const printed = await succeed(t, guest, 'env; echo; cat /proc/1/environ | tr "\\0" "\\n"')
  for (const line of ['API_KEY=mock-API_KEY', 'LOGIN=mock-LOGIN', 'TRACE=mock-TRACE', `MARKER=${marker}`]) t.match(printed, line)
  t.notMatch(printed, 'REAL_')
  const told = JSON.stringify(await server.sdk.instances.get(id))
  for (const value of Object.values(secrets)) t.notOk(told.includes(value))
}
