// Counts the tests of several files that ran in one process, each a block of its results: see test/helpers/shared-process.ts.
import { Parser, type Result } from 'tap-parser'
import { describe, follow, newBlock, outcomeOf, readResult, type Block, type Ending, type FileOutcome } from './count.ts'
import type { TestFile } from './files.ts'

export interface SharedResult {
  readonly outcomes: readonly FileOutcome[]
  /** The files that the process did not come to, for what one of those before them did to it. */
  readonly left: readonly TestFile[]
}

interface Begun {
  readonly block: Block
  isOver: boolean
  durationMs: number | undefined
  said: string
}

const begin = (file: TestFile): Begun => ({ block: newBlock(file.source), isOver: false, durationMs: undefined, said: '' })

/**
 * @param files of which the process runs the first one, then the next
 * @param said takes what the process has printed besides its results, since the last call
 * @param onOver called when a file is over
 */
export function createSharedCounter (files: readonly [TestFile, ...TestFile[]], said: () => string, onOver: () => void): { parser: Parser, finish: (ending: Ending) => SharedResult } {
  const parser = new Parser()
  const begun: Begun[] = []
  parser.on('child', (childParser: Parser) => {
    const file = files[begun.length]
    if (file === undefined) throw new Error(`results of more files than were asked for: ${childParser.name}`)
    const next = begin(file)
    follow(childParser, next.block)
    begun.push(next)
  })
  parser.on('assert', (result: Result) => {
    const last = begun.at(-1)
    if (last === undefined) return
    if (last.isOver) {
      // What the process itself says after a file is about that file.
      if (!result.ok) last.block.broken.push({ name: result.name.replace(/^- /, ''), detail: describe(result) })
      return
    }
    readResult(last.block, result)
    Object.assign(last, { isOver: true, durationMs: result.time ?? undefined, said: said() })
    onOver()
  })
  return {
    parser,
    finish: (ending) => {
      const faults = faultsOf(ending, begun, files.length)
      // A process that ends between two files, or before the next one has said anything, ends in the next one.
      const next = files[begun.length]
      if (faults.length > 0 && next !== undefined && begun.at(-1)?.isOver !== false) begun.push(begin(next))
      const last = begun.at(-1)
      if (last !== undefined) {
        last.said += said()
        last.block.broken.push(...faults.map((detail) => ({ name: '', detail })))
      }
      return { outcomes: begun.map(({ block, durationMs, said }) => outcomeOf(block, { durationMs, said })), left: files.slice(begun.length) }
    }
  }
}

/** What is wrong with the process, which is a failure of the file that it was at. */
function faultsOf ({ exitCode, signal, overranSeconds }: Ending, begun: readonly Begun[], count: number): string[] {
  const hasFailed = ({ block }: Begun): boolean => block.count.failed > 0 || block.broken.length > 0
  const isOver = begun.length === count && begun.every(({ isOver }) => isOver)
  // A file that ends its process is still told of as one that failed.
  const last = begun.at(-1)
  if (isOver ? begun.some(hasFailed) : last?.isOver === true && hasFailed(last)) return []
  if (overranSeconds !== undefined) return [`it was not done after ${overranSeconds} s, the bound of all files of its process, and was ended`]
  if (signal !== null) return [`its process was ended by ${signal}`]
  return isOver && exitCode === 0 ? [] : [`its process ended with code ${String(exitCode)}`]
}
