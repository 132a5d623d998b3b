// Reads the guest's last report. The guest is hostile: only a report that is small, complete and exact is believed.
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { hasCode } from '../../../core/errors/system-code.ts'

export interface ExitReport {
  readonly exitCode: number
  /** 0 when the program was not killed by a signal */
  readonly signal: number
  readonly oom: boolean
  readonly error?: string
}

const MAX_REPORT_BYTES = 4096

/** What the report says, or `undefined` when it is not to be believed. */
export function parseReport (content: Buffer): ExitReport | undefined {
  if (content.length > MAX_REPORT_BYTES) return undefined
  const text = content.toString('utf8')
  // The last line must be `end`: anything after it, or a missing newline, means that it is not whole.
  if (!text.endsWith('\nend\n') || text.includes('\u0000')) return undefined
  const fields = new Map<string, string>()
  for (const line of text.slice(0, -'end\n'.length).split('\n').slice(0, -1)) {
    const at = line.indexOf('=')
    const key = line.slice(0, at)
    if (at < 1 || fields.has(key)) return undefined
    fields.set(key, line.slice(at + 1))
  }
  const version = numberOf(fields.get('version'), 1)
  const exitCode = numberOf(fields.get('exit_code'), 255)
  const signal = numberOf(fields.get('signal') ?? '0', 64)
  const oom = numberOf(fields.get('oom') ?? '0', 1)
  if (version !== 1 || exitCode === undefined || signal === undefined || oom === undefined) return undefined
  const error = cleanLine(fields.get('error') ?? '')
  return { exitCode, signal, oom: oom === 1, ...(error === '' ? {} : { error }) }
}

export interface ReportFacts {
  readonly report: ExitReport | undefined
  /** epoch `ms` of the last write; undefined when the guest wrote nothing */
  readonly writtenAt: number | undefined
}

/** Reads a report file. A file that is missing, a link or too big counts as no report. */
export async function readReport (path: string): Promise<ReportFacts> {
  let handle
  try {
    handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ELOOP')) return { report: undefined, writtenAt: undefined }
    throw error
  }
  try {
    const facts = await handle.stat()
    if (!facts.isFile() || facts.size === 0) return { report: undefined, writtenAt: undefined }
    const buffer = Buffer.alloc(MAX_REPORT_BYTES + 1)
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, 0)
    return { report: parseReport(buffer.subarray(0, bytesRead)), writtenAt: facts.mtimeMs }
  } finally {
    await handle.close()
  }
}

/** One line for people out of text that a guest wrote: no control characters, at most 200 characters. */
export function cleanLine (text: string): string {
  return text.replace(/\p{Cc}+/gu, ' ').trim().slice(0, 200)
}

function numberOf (text: string | undefined, most: number): number | undefined {
  if (text === undefined || !/^\d{1,3}$/.test(text)) return undefined
  const value = Number(text)
  return value <= most ? value : undefined
}
