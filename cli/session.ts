// What every command uses: a server, standard output and error, and the common options.
import { createApi, type Api } from './api/client.ts'
import { findTarget } from './connection/target.ts'
import { Failure, failureLine, Interrupted, wrongUsage } from './failure.ts'
import type { Input } from './input.ts'
import { clean } from '../core/clean-text.ts'
import { formatOf, formatted, type Format } from './output/format.ts'
import { createProgress, type Progress } from './output/progress.ts'
import { createStyle, type Style } from './output/style.ts'
import { table } from './output/table.ts'
import { durationMs } from './output/values.ts'
import { version } from '../core/version.ts'

export interface Session {
  /** The API of the chosen server. */
  api (): Promise<Api>
  readonly environment: NodeJS.ProcessEnv
  readonly format: Format
  readonly quiet: boolean
  /** no questions: the answer to each is yes */
  readonly yes: boolean
  /** of --timeout; undefined when it was not given */
  readonly timeoutMs: number | undefined
  /** aborts on Ctrl-C and SIGTERM, and when nobody reads what is printed any more */
  readonly interrupted: AbortSignal
  readonly progress: Progress
  /** for standard output */
  readonly style: Style
  /** One line to standard output. */
  line (text: string): void
  /** Prints a value for programs, or `rows` as a table. */
  print (value: unknown, rows?: { readonly headings: readonly string[], readonly rows: readonly (readonly string[])[] }): Promise<void>
  /** Prints a failure that does not end the command. */
  complain (failure: Failure): void
  /** One line to standard error, unless -q; what others chose in it is made harmless. */
  say (text: string): void
}

const ANSWER_TIMEOUT_MS = 330_000

/** @param outputLost aborts when standard output or standard error takes no more */
export function createSession (input: Input, environment: NodeJS.ProcessEnv, outputLost: AbortSignal): Session {
  const quiet = input.flag('quiet')
  const timeoutMs = timeout(input.text('timeout'))
  const format = formatOf(input.text('format'), input.flag('json'))
  const interrupted = interruption(timeoutMs, outputLost)
  let api: Promise<Api> | undefined
  const line = (text: string): void => { process.stdout.write(`${text}\n`) }
  return {
    api: () => {
      api ??= findTarget({ url: input.text('url'), token: input.text('token'), tokenFile: input.text('tokenFile'), ca: input.text('ca'), context: input.text('context') }, environment)
        .then((target) => createApi(target, `berth-cli/${version}`, ANSWER_TIMEOUT_MS, interrupted))
      return api
    },
    environment, format, quiet, timeoutMs, interrupted, line,
    yes: input.flag('yes'),
    progress: createProgress(process.stderr, quiet || format !== 'table'),
    style: createStyle(process.stdout.isTTY, environment, input.choice('color') !== false),
    print: async (value, rows) => {
      if (format !== 'table') {
        const text = await formatted(value, format)
        // For an empty list nothing is printed: a script would take an empty line for a name.
        if (!(Array.isArray(value) && value.length === 0 && text === '')) line(text)
      } else if (rows === undefined) line(await formatted(value, 'json'))
      else for (const text of table(rows.headings, rows.rows, widthOf(process.stdout))) line(text)
    },
    complain: (failure) => { process.stderr.write(`${failureLine(failure)}\n`) },
    say: (text) => { if (!quiet) process.stderr.write(`${clean(text)}\n`) }
  }
}

/** Undefined of what is no terminal, and of a terminal that does not know it, and says 0. */
function widthOf ({ isTTY, columns }: NodeJS.WriteStream): number | undefined {
  return isTTY && columns > 0 ? columns : undefined
}

/** A timer of Node that is set for longer ends at once. */
const LONGEST_TIMEOUT_MS = 596 * 3_600_000

function timeout (text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const ms = durationMs(text)
  if (ms === undefined || ms === 0) throw wrongUsage(`--timeout ${text} is no duration`, 'write it like 90s, 5m or 1h30m')
  if (ms > LONGEST_TIMEOUT_MS) throw wrongUsage(`--timeout ${text} is too long`, 'it is at most 596h')
  return ms
}

/** Ctrl-C and SIGTERM abort the waiting command; the second signal ends the process. So does the end of its output, for the reason that it has. */
function interruption (timeoutMs: number | undefined, outputLost: AbortSignal): AbortSignal {
  const controller = new AbortController()
  outputLost.addEventListener('abort', () => controller.abort(outputLost.reason), { once: true })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (controller.signal.aborted) process.exit(130)
      controller.abort(new Interrupted(signal))
    })
  }
  if (timeoutMs !== undefined) setTimeout(() => controller.abort(new Failure(`it took longer than ${timeoutMs / 1000} s`, { exitCode: 124 })), timeoutMs).unref()
  return controller.signal
}
