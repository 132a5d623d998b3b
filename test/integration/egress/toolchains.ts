// From inside of a real machine, against real origins with an authority of their own in another network namespace: Java and Chromium, which ask no system whom to
// trust, and cargo and go. Run by toolchains.long.test.ts in a network namespace of its own.
import t, { type Test } from 'tap'
import { missingPrivileges } from '../../../plugins/networking/privileges.ts'
import { runCases } from './cases/run.ts'
import { browser, cargo, go, java } from './cases/toolchains.ts'
import { pushToolchains, TRIED, type Toolchain } from './toolchains-image.ts'
import { createVm, openWorld, type VmStage } from './vm.ts'

const reason = missingPrivileges()
if (reason === undefined) await main()
else t.plan(0, reason)

async function main (): Promise<void> {
  const world = await openWorld(t)
  const stage = await createVm(world, await pushToolchains(world.server), 'all', 'toolchains', { size: '2GB', vcpus: 2 })
  t.comment(`up after ${Math.round(performance.now())} ms`)
  const cases: Readonly<Record<Toolchain, (t: Test, stage: VmStage) => Promise<void>>> = { go, cargo, java, chromium: browser }
  await runCases(Object.fromEntries(TRIED.map((name) => [`P16: ${name}`, async (t: Test) => await cases[name](t, stage)])))
}
