// Debian 13 as a system of its own: what a newcomer tries first there, and the whole journey. `npm run test:systems` does it for others.
import t from 'tap'
import { createHostCommands } from '../../core/process/run.ts'
import { whyNot } from '../../setup/systems/root.ts'
import { runSystem } from '../../setup/systems/run.ts'

/** with the root to be made */
const BOUND_MS = 1_500_000

const skip = await whyNot(createHostCommands(), 'trixie') ?? false
t.setTimeout(BOUND_MS)
for (const step of ['quickstart', 'journey'] as const) {
  await t.test(`${step} passes on Debian 13`, { timeout: BOUND_MS, skip }, async (t) => {
    const said: string[] = []
    const failed = await runSystem({ suite: 'trixie', steps: [step], say: (line) => { said.push(line) }, signal: AbortSignal.timeout(BOUND_MS) })
    t.same(failed, [], said.slice(-80).join('\n'))
  })
}
