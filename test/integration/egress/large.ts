// A gigabyte each way through a real machine and the proxy, which takes long under emulation. Run by large.long.test.ts in a network namespace of its own.
import t from 'tap'
import { missingPrivileges } from '../../../plugins/networking/privileges.ts'
import { runCases } from './cases/run.ts'
import { gigabytes } from './cases/web.ts'
import { pushBareImage } from './image.ts'
import { createVm, openWorld } from './vm.ts'

const reason = missingPrivileges()
if (reason === undefined) await main()
else t.plan(0, reason)

async function main (): Promise<void> {
  const world = await openWorld(t)
  const stage = await createVm(world, await pushBareImage(world.server), 'all', 'large')
  await runCases({ 'P8: a gigabyte down and up': async (t) => await gigabytes(t, stage) })
}
