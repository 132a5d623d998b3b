// The program's own log on standard error, one JSON object per line. It is given codes and counts, never a header or a policy.

export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>

export interface Log {
  info (message: string, fields?: LogFields): void
  warn (message: string, fields?: LogFields): void
  error (message: string, error: unknown, fields?: LogFields): void
}

/** A log that writes to `write`, for example standard error; the fields `always` are in each line. */
export function createLog (write: (line: string) => void, always?: LogFields): Log {
  const line = (level: string, message: string, fields?: LogFields) => write(`${JSON.stringify({ level, time: new Date().toISOString(), msg: message, ...always, ...fields })}\n`)
  return {
    info: (message, fields) => line('info', message, fields),
    warn: (message, fields) => line('warn', message, fields),
    error: (message, error, fields) => line('error', message, { ...fields, error: error instanceof Error ? error.stack ?? error.message : String(error) })
  }
}
