// The output of a build's commands: without secrets, split into lines, for the build's followers; the last lines are kept for error messages.
import { createLines } from './lines.ts'
import { createMask } from './mask.ts'

const KEPT_LINES = 20
const STEP = /^(?:\[\d+\/\d+\] )?STEP \d+\/\d+: /

export interface BuildLog {
  /** Adds a line of the server's own. */
  note (line: string): void
  push (chunk: Buffer): void
  /** The command has ended. */
  end (): void
  /** The last lines, from the beginning of the last step at the earliest. */
  last (): string[]
}

export function createBuildLog (secrets: Iterable<Buffer>, take: (line: string) => void): BuildLog {
  const mask = createMask(secrets)
  let kept: string[] = []
  const lines = createLines((line) => {
    kept = STEP.test(line) ? [line] : [...kept.slice(1 - KEPT_LINES), line]
    take(line)
  })
  return {
    note: take,
    push: (chunk) => lines.push(mask.push(chunk)),
    end () {
      lines.push(mask.end())
      lines.end()
    },
    last: () => kept.filter((line) => line !== '')
  }
}
