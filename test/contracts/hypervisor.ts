// The contract of core/contracts/hypervisor.ts in executable form: every driver runs these cases, with real VMs where it has them.
import type { Test } from 'tap'
import { attachingCases } from './hypervisor/attaching.ts'
import { balloonCases } from './hypervisor/balloon.ts'
import { endingCases } from './hypervisor/ending.ts'
import type { Booted, HypervisorFixture } from './hypervisor/fixture.ts'
import { bootOnce } from './hypervisor/image-fixture.ts'
import { changingCases, forkingCases, imagingCases, leavingCases } from './hypervisor/imaging.ts'
import { launchingCases } from './hypervisor/launching.ts'
import { networkCases } from './hypervisor/network.ts'
import { outputCases } from './hypervisor/output.ts'
import { pluggingCases } from './hypervisor/plugging.ts'
import { privateMemoryCases } from './hypervisor/private-memory.ts'
import { replacingCases } from './hypervisor/replacing.ts'
import { separationCases } from './hypervisor/separation.ts'
import { stateCases } from './hypervisor/state.ts'
import { streamCases } from './hypervisor/stream.ts'

export type { HypervisorFixture } from './hypervisor/fixture.ts'

export const GROUPS: Readonly<Record<string, (t: Test, fixture: HypervisorFixture) => Promise<void>>> = {
  launching: launchingCases,
  stream: streamCases,
  state: stateCases,
  ending: endingCases,
  attaching: attachingCases,
  output: outputCases,
  separation: separationCases,
  replacing: replacingCases,
  plugging: pluggingCases,
  imaging: imagingCases,
  changing: changingCases,
  forking: forkingCases,
  leaving: leavingCases,
  private: privateMemoryCases,
  balloon: balloonCases,
  network: networkCases
}

/** Runs all cases, or the groups of them whose names are in `BERTH_CONFORMANCE_CASES`, with commas. A driver's own test file calls it with what the cases need. */
export async function hypervisorConformance (t: Test, fixture: HypervisorFixture): Promise<void> {
  const wanted = process.env['BERTH_CONFORMANCE_CASES']?.split(',')
  const unknown = wanted?.find((name) => GROUPS[name] === undefined)
  if (unknown !== undefined) throw new Error(`there are no cases "${unknown}"; there are ${Object.keys(GROUPS).join(', ')}`)
  let booted: Promise<Booted | undefined> | undefined
  const shared: HypervisorFixture = { ...fixture, booted: async () => await (booted ??= bootOnce(t, fixture)) }
  // What a driver waits for holds no process; a server has its port for that.
  const held = setInterval(() => {}, 60_000)
  try {
    for (const [name, cases] of Object.entries(GROUPS)) if (wanted?.includes(name) ?? true) await cases(t, shared)
  } finally {
    clearInterval(held)
  }
}
