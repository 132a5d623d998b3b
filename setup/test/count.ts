// Counts the tests in the TAP of one file. A test is a named block that holds no further blocks; a file without blocks is one test.
import { Parser, type Result } from 'tap-parser'

export interface TestCount { passed: number, failed: number, skipped: number }

export interface Failure { readonly name: string, readonly detail: string }
export interface Skip { readonly name: string, readonly reason: string }

/** The result of one test file. */
export interface FileOutcome {
  readonly name: string
  readonly count: TestCount
  readonly failures: readonly Failure[]
  readonly skips: readonly Skip[]
  readonly durationMs: number | undefined
  /** processor time of the file and all that it started; known when it was asked for */
  readonly processorSeconds?: number
  /** the end of what it printed besides its results */
  readonly said: string
}

/** The result of a file that is left out as a whole. */
export function notBegun (name: string, reason: string): FileOutcome {
  return { name, count: { passed: 0, failed: 0, skipped: 1 }, failures: [], skips: [{ name, reason }], durationMs: undefined, said: '' }
}

/** The state of a block while it runs. */
export interface Block {
  readonly name: string
  readonly count: TestCount
  readonly failures: Failure[]
  readonly skips: Skip[]
  /** failed assertions directly in this block */
  readonly broken: Failure[]
  hasBlocks: boolean
  asserts: number
}

export function newBlock (name: string): Block {
  return { name, count: { passed: 0, failed: 0, skipped: 0 }, failures: [], skips: [], broken: [], hasBlocks: false, asserts: 0 }
}

/** How the process of a test file ended. */
export interface Ending {
  readonly exitCode: number | null
  readonly signal: string | null
  /** the limit that it exceeded, if it did */
  readonly overranSeconds?: number
  readonly durationMs?: number
  readonly said?: string
}

/**
 * Counts one file. The file's TAP is written to the stream `parser`; `finish`, to be called after its end and that of the process,
 * returns the result of the file.
 */
export function createCounter (name: string): { parser: Parser, finish: (ending: Ending) => FileOutcome } {
  const parser = new Parser()
  const file = newBlock(name)
  follow(parser, file)
  return {
    parser,
    finish: (ending) => {
      file.broken.push(...faultsOf(parser, file, ending))
      return outcomeOf(file, ending)
    }
  }
}

/** The result of a file whose block is complete. */
export function outcomeOf (file: Block, { durationMs, said = '' }: Pick<Ending, 'durationMs' | 'said'>): FileOutcome {
  const outcome = newBlock('')
  close(outcome, file)
  return { name: file.name, count: outcome.count, failures: outcome.failures, skips: outcome.skips, durationMs, said }
}

/** What is wrong with a file as a whole, besides the tests that it reported as failed. */
function faultsOf (parser: Parser, file: Block, { exitCode, signal, overranSeconds }: Ending): Failure[] {
  const { results } = parser
  if (overranSeconds !== undefined) return [{ name: '', detail: `it was not done after ${overranSeconds} s, its bound, and was ended` }]
  if (results === null) return [{ name: '', detail: 'its results are not complete' }]
  // The parser invents such a plan for a stream without one.
  if (results.plan.skipAll && results.ok && !file.hasBlocks && results.plan.skipReason !== 'no tests found') noteSkip(file, '', results.plan.skipReason)
  const faults = [
    ...(results.bailout === false ? [] : [`it gave up: ${String(results.bailout)}`]),
    ...results.failures.map(({ tapError }) => tapError).filter(error => typeof error === 'string')
  ]
  const isExplained = faults.length > 0 || file.broken.length > 0 || file.failures.length > 0
  if (signal !== null) faults.push(`its process was ended by ${signal}`)
  else if (exitCode !== 0 && !isExplained) faults.push(`its process ended with code ${String(exitCode)}`)
  else if (!results.ok && !isExplained) faults.push('its results do not add up')
  return faults.map(detail => ({ name: '', detail }))
}

/** Adds what a parser reads to its block. */
export function follow (parser: Parser, block: Block): void {
  let open: Block | undefined
  parser.on('child', (childParser: Parser) => {
    block.hasBlocks = true
    open = newBlock(childParser.name)
    follow(childParser, open)
  })
  parser.on('assert', (result: Result) => {
    if (open !== undefined) {
      const child = open
      open = undefined
      settle(block, child, result)
    } else {
      assertion(block, result)
    }
  })
}

/** Adds an assertion, or a skipped block, which is one line only. */
function assertion (block: Block, result: Result): void {
  const name = result.name.replace(/^- /, '')
  if (result.skip !== false) {
    noteSkip(block, name, result.skip)
  } else if (result.todo !== false) {
    block.broken.push({ name, detail: 'marked as still to be done' })
  } else {
    block.asserts++
    if (!result.ok) block.broken.push({ name, detail: describe(result) })
  }
}

/** A skip without a reason is a failure. */
function noteSkip (block: Block, name: string, reason: string | boolean): void {
  if (typeof reason === 'string' && reason.trim() !== '') {
    block.count.skipped++
    block.skips.push({ name, reason: reason.trim() })
  } else {
    block.broken.push({ name, detail: 'skipped without a reason' })
  }
}

/** Reads a block's own result line, and closes the block. */
function settle (parent: Block, child: Block, result: Result): void {
  readResult(child, result)
  close(parent, child)
}

/** Adds what a block's own result line says besides its tests. */
export function readResult (child: Block, result: Result): void {
  if (result.skip !== false) noteSkip(child, '', result.skip)
  const isExplained = child.broken.length > 0 || child.failures.length > 0
  if (!result.ok && !isExplained) child.broken.push({ name: '', detail: describe(result) })
}

/** Adds the result of a block to its parent. */
function close (parent: Block, child: Block): void {
  const isEmpty = !child.hasBlocks && child.asserts === 0 && child.count.skipped === 0
  if (isEmpty && child.broken.length === 0) child.broken.push({ name: '', detail: 'it asserts nothing' })
  if (child.broken.length > 0) child.count.failed++
  else if (!child.hasBlocks && child.asserts > 0) child.count.passed++
  parent.count.passed += child.count.passed
  parent.count.failed += child.count.failed
  parent.count.skipped += child.count.skipped
  const under = (name: string): string => [child.name, name].filter(part => part !== '').join(' > ')
  parent.failures.push(...[...child.broken, ...child.failures].map(({ name, detail }) => ({ name: under(name), detail })))
  parent.skips.push(...child.skips.map(({ name, reason }) => ({ name: under(name), reason })))
}

/** The parts of a failure's diagnosis that help a reader; the last two are what a program said that a test ran. */
const SHOWN = ['message', 'error', 'diff', 'expected', 'wanted', 'found', 'exitCode', 'signal', 'timeout', 'at', 'stack', 'stdout', 'stderr']
/** of each: a program may have said very much */
const SHOWN_CHARACTERS = 20_000

export function describe (result: Result): string {
  const diag: unknown = result.diag
  if (typeof diag !== 'object' || diag === null) return result.tapError ?? 'failed'
  const lines = Object.entries(diag).filter(([key]) => SHOWN.includes(key)).map(([key, value]) => {
    const text = (typeof value === 'string' ? value : JSON.stringify(value)).slice(-SHOWN_CHARACTERS)
    return `${key}: ${text.trimEnd().split('\n').join('\n  ')}`
  })
  return lines.length === 0 ? 'failed' : lines.join('\n')
}
