// From inside of a real machine, against real origins with an authority of their own in another network namespace: Java and Chromium, which ask no system whom to
// trust, and cargo and go. Run by toolchains.long.test.ts in a network namespace of its own.
import t from 'tap'
import { missingPrivileges } from '../../../plugins/networking/privileges.ts'
import { runCases } from './cases/run.ts'
import { browser, cargo, go, java } from './cases/toolchains.ts'
import { pushToolchains } from './toolchains-image.ts'
import { createVm, openWorld } from './vm.ts'

const reason = missingPrivileges()
if (reason === undefined) await main()
else t.plan(0, reason)

async function main (): Promise<void> {
  const world = await openWorld(t)
  const stage = await createVm(world, await pushToolchains(world.server), 'all', 'toolchains', { size: '2GB', vcpus: 2 })
  t.comment(`up after ${Math.round(performance.now())} ms`)
  await runCases({
    'P16: go': async (t) => await go(t, stage),
    'P16: cargo': async (t) => await cargo(t, stage),
    'P16: Java': async (t) => await java(t, stage),
    'P16: Chromium': async (t) => await browser(t, stage)
  })
}
