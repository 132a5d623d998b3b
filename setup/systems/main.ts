// `npm run test:systems -- SUITE [STEP...]`: quickstart, the tests that need no machine, and the journey, in a system of its own.
import { createHostCommands } from '../../core/process/run.ts'
import { whyNot } from './root.ts'
import { runSystem, type Step } from './run.ts'
import { isSuiteName, SUITES } from './suites.ts'

/** the steps that are run by default, and those that are run when they are named */
const USUAL: readonly Step[] = ['quickstart', 'versions', 'tests', 'journey']
const STEPS: readonly Step[] = [...USUAL, 'conformance']

async function main ([suite = '', ...wanted]: readonly string[]): Promise<number> {
  const steps = wanted.length === 0 ? USUAL : STEPS.filter((step) => wanted.includes(step))
  if (!isSuiteName(suite) || steps.length < wanted.length) {
    console.error(`npm run test:systems -- SUITE [STEP...]; SUITE is one of ${Object.keys(SUITES).join(', ')}, STEP one of ${STEPS.join(', ')}`)
    return 2
  }
  const reason = await whyNot(createHostCommands(), suite)
  if (reason !== undefined) {
    console.error(`${suite}: not tried: ${reason}`)
    return 1
  }
  const failed = await runSystem({ suite, steps, say: (line) => console.log(line) })
  console.log(failed.length === 0 ? `${suite}: all passed` : `${suite}: failed: ${failed.join(', ')}`)
  return failed.length === 0 ? 0 : 1
}

process.exitCode = await main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : String(error))
  return 1
})
