// `npm run conformance`: drivers' suites, and a table of driver, case, how it was run, and outcome.
import { parseArgs } from 'node:util'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { runUnderKvm, type Outcome } from '../../emulated-host/kvm.ts'
import { casesOf, readResults } from '../../emulated-host/replay.ts'
import { SUITES } from './drivers.ts'

/** of one driver under KVM that is emulated */
const KVM_TIMEOUT_MS = 3_600_000

const { values: { driver = [...SUITES.keys()], kvm, case: groups = [], processors } } = parseArgs({
  options: {
    driver: { type: 'string', multiple: true },
    kvm: { type: 'boolean', default: false },
    case: { type: 'string', multiple: true },
    processors: { type: 'string', default: '1' }
  }
})
const env: Readonly<Record<string, string>> = groups.length === 0 ? {} : { BERTH_CONFORMANCE_CASES: groups.join(',') }

async function runHere (file: URL): Promise<Outcome> {
  const child = spawn(process.execPath, ['--enable-source-maps', fileURLToPath(file)], { env: { ...process.env, ...env, TAP: '1' }, stdio: ['ignore', 'pipe', 'inherit'] })
  let tap = ''
  child.stdout.on('data', (chunk: Buffer) => { tap += chunk.toString() })
  const [code] = await once(child, 'close')
  return { tap, exitCode: typeof code === 'number' ? code : undefined, evidence: [] }
}

/** Prints a driver's part of the table; whether nothing failed. */
async function run (name: string): Promise<boolean> {
  const file = SUITES.get(name)
  if (file === undefined) throw new Error(`no driver "${name}" has a conformance suite; there are ${[...SUITES.keys()].join(', ')}`)
  const began = performance.now()
  const { tap, exitCode, death, evidence } = kvm
    ? await runUnderKvm({ file, env, processors: Number(processors), memoryMib: 4096, timeoutMs: KVM_TIMEOUT_MS }, (line) => console.error(`${name}: ${line}`))
    : await runHere(file)
  const how = kvm ? 'real, under KVM' : 'real'
  const cases = casesOf(readResults(tap))
  for (const { path, outcome } of cases) console.log([name, path.join(' > '), outcome === 'skipped' ? 'not supported' : how, outcome].join(' | '))
  const count = (outcome: string): number => cases.filter((one) => one.outcome === outcome).length
  console.log(`${name}: ${count('passed')} passed, ${count('failed')} failed, ${count('skipped')} not supported, after ${Math.round((performance.now() - began) / 1000)} s${exitCode === 0 ? '' : `; it ended with ${String(exitCode)}${death === undefined ? '' : `: ${death}`}`}`)
  if (exitCode === 0) return true
  for (const text of evidence) console.error(text)
  console.error(tap.split('\n').filter((line) => /^\s*not ok|^\s+(?:message|error|at|found|wanted|diff):/.test(line)).join('\n'))
  return false
}

let isFine = true
for (const name of driver) isFine = await run(name) && isFine
process.exit(isFine ? 0 : 1)
