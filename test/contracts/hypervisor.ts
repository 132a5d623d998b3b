// The contract of core/contracts/hypervisor.ts in executable form: every driver runs these cases, with real VMs where it has them.
import type { Test } from 'tap'
import { attachingCases } from './hypervisor/attaching.ts'
import { balloonCases } from './hypervisor/balloon.ts'
import { endingCases } from './hypervisor/ending.ts'
import type { HypervisorFixture } from './hypervisor/fixture.ts'
import { imagingCases } from './hypervisor/imaging.ts'
import { launchingCases } from './hypervisor/launching.ts'
import { networkCases } from './hypervisor/network.ts'
import { outputCases } from './hypervisor/output.ts'
import { pluggingCases } from './hypervisor/plugging.ts'
import { replacingCases } from './hypervisor/replacing.ts'
import { separationCases } from './hypervisor/separation.ts'
import { stateCases } from './hypervisor/state.ts'
import { streamCases } from './hypervisor/stream.ts'

export type { HypervisorFixture } from './hypervisor/fixture.ts'

/** Runs all cases. A driver's own test file calls it with what the cases need. */
export async function hypervisorConformance (t: Test, fixture: HypervisorFixture): Promise<void> {
  for (const cases of [launchingCases, streamCases, stateCases, endingCases, attachingCases, outputCases, separationCases, replacingCases, pluggingCases, imagingCases, balloonCases, networkCases]) {
    await cases(t, fixture)
  }
}
