// Lines of the server's log as the API gives them.
import type { RecentLog } from '../../../core/logging/recent.ts'
import { LEVELS, type HostLogLine, type Level } from '../schemas.ts'

/** An answer ends here, whatever was asked for: the rest is read with `since`. */
const MOST_CHARACTERS = 8 * 2 ** 20

export interface NewestLines {
  /** oldest first */
  readonly lines: readonly HostLogLine[]
  /** when the oldest line was written that is still there */
  readonly keptSince: string | undefined
}

export interface Wanted {
  readonly limit: number
  readonly level?: Level | undefined
  /** ms since the epoch */
  readonly since?: number | undefined
}

/** @param run of the server: numbers of lines begin anew with each */
export function newestLines (log: RecentLog, run: string, { limit, level, since = -Infinity }: Wanted): NewestLines {
  const lines: HostLogLine[] = []
  let characters = 0
  for (let number = log.next - 1; number >= log.first && lines.length < limit; number--) {
    const text = log.at(number) ?? ''
    const line = lineOf(text, run, number)
    if (line === undefined || !isImportant(line, level)) continue
    // Lines are written in the order of their times.
    if (Date.parse(line.time) < since) break
    characters += text.length
    if (characters > MOST_CHARACTERS && lines.length > 0) break
    lines.push(line)
  }
  const oldest = lineOf(log.at(log.first) ?? '', run, log.first)
  return { lines: lines.reverse(), keptSince: oldest?.time }
}

export function isImportant ({ level }: HostLogLine, least: Level | undefined): boolean {
  return least === undefined || LEVELS.indexOf(level) >= LEVELS.indexOf(least)
}

/** Undefined for what is no line of the log. */
export function lineOf (text: string, run: string, number: number): HostLogLine | undefined {
  const parsed = objectOf(text)
  if (parsed === undefined) return undefined
  const { time, level, msg, ...fields } = parsed
  const known = LEVELS.find((each) => each === level)
  if (known === undefined || typeof time !== 'string') return undefined
  return { id: `${run}-${number}`, time, level: known, message: typeof msg === 'string' ? msg : '', fields }
}

function objectOf (text: string): Readonly<Record<string, unknown>> | undefined {
  if (text === '') return undefined
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? Object.fromEntries(Object.entries(value)) : undefined
  } catch {
    return undefined
  }
}
