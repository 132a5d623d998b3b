// `npm run conformance`: drivers' suites with their VMMs and with doubles of these, and a table of driver, case, how it was run, and outcome.
import { parseArgs } from 'node:util'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { runUnderKvm, type Outcome } from '../../emulated-host/kvm.ts'
import { namedPrograms } from '../../emulated-host/named-programs.ts'
import { DRIVERS } from './drivers.ts'
import { leftOut, lineOf, rowsOf, totals, type How, type Row } from './table.ts'

/** of one driver, also under KVM that is emulated */
const TIMEOUT_MS = 3_600_000

const { values: { driver: named, kvm, case: groups = [], processors } } = parseArgs({
  options: {
    driver: { type: 'string', multiple: true },
    kvm: { type: 'boolean', default: false },
    case: { type: 'string', multiple: true },
    processors: { type: 'string', default: '1' }
  }
})
const env: Readonly<Record<string, string>> = groups.length === 0 ? {} : { BERTH_CONFORMANCE_CASES: groups.join(',') }
const table: Row[] = []
const driver = named ?? [...DRIVERS.keys()]

async function runHere (file: URL): Promise<Outcome> {
  const child = spawn(process.execPath, ['--enable-source-maps', fileURLToPath(file)], { env: { ...process.env, ...env, TAP: '1', TAP_TIMEOUT: String(TIMEOUT_MS / 1000) }, stdio: ['ignore', 'pipe', 'inherit'] })
  let tap = ''
  child.stdout.on('data', (chunk: Buffer) => { tap += chunk.toString() })
  const [code] = await once(child, 'close')
  return { tap, exitCode: typeof code === 'number' ? code : undefined, evidence: [] }
}

async function runOnKvm (name: string, file: URL): Promise<Outcome> {
  return await runUnderKvm({ file, env: { ...env, ...namedPrograms() }, processors: Number(processors), memoryMib: 4096, timeoutMs: TIMEOUT_MS }, (line) => console.error(`${name}: ${line}`))
}

/** Prints a suite's part of the table; whether nothing failed. */
async function runSuite (name: string, file: URL, how: How): Promise<boolean> {
  const began = performance.now()
  const { tap, exitCode, death, evidence } = how === 'real, under KVM' ? await runOnKvm(name, file) : await runHere(file)
  const rows = rowsOf(name, how, tap)
  table.push(...rows)
  for (const row of rows) console.log(lineOf(row))
  for (const total of totals(rows)) console.log(`${name}: ${total}`)
  console.log(`${name}: after ${Math.round((performance.now() - began) / 1000)} s${exitCode === 0 ? '' : `; it ended with ${String(exitCode)}${death === undefined ? '' : `: ${death}`}`}`)
  if (exitCode === 0) return true
  for (const text of evidence) console.error(text)
  console.error(tap.split('\n').filter((line) => /^\s*not ok|^\s+(?:message|error|at|found|wanted|diff):/.test(line)).join('\n'))
  return false
}

async function run (name: string): Promise<boolean> {
  if (!DRIVERS.has(name)) throw new Error(`no driver "${name}" has a conformance suite; there are ${[...DRIVERS.keys()].join(', ')}`)
  const suite = DRIVERS.get(name)
  if (suite === undefined) {
    const row: Row = { driver: name, name: 'all', how: 'unsupported', outcome: 'skipped', reason: 'there is no driver for it yet' }
    table.push(row)
    console.log(lineOf(row))
    return true
  }
  const isReal = await runSuite(name, suite.real, kvm ? 'real, under KVM' : 'real')
  // Beside the VMM's own, which proves more, but not wherever this runs.
  const isDouble = kvm || suite.double === undefined || await runSuite(name, suite.double, 'double')
  return isReal && isDouble
}

let isFine = true
for (const name of driver) isFine = await run(name) && isFine
for (const total of totals(table)) console.log(total)
const notRun = leftOut(table)
// Who names a driver wants to know that it holds.
if (named !== undefined && notRun.length > 0) console.log(`not run, though it was named: ${notRun.join(', ')}`)
process.exit(isFine && (named === undefined || notRun.length === 0) ? 0 : 1)
