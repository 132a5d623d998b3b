// The parameters that a program gets from the process that started it, and its report.

/** The object that was passed. */
export function given<Given> (): Given {
  return JSON.parse(process.argv[2] ?? '{}')
}

/** Sends the report of a program. */
export function say (found: object | 'listening'): void {
  process.send?.(found)
}
