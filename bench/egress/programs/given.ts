// What the process that started a program wants of it, and how it is answered.

/** The object that was passed. */
export function given<Given> (): Given {
  return JSON.parse(process.argv[2] ?? '{}')
}

/** Says the one thing that a program has to say. */
export function say (found: object | 'listening'): void {
  process.send?.(found)
}
