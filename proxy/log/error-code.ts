// Reads the codes of system errors.

/** The `code` of an error of Node; `undefined` when it has none. */
export function errorCode (error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/** Whether `error` is Node's error of one of these codes. */
export function hasCode (error: unknown, ...codes: readonly string[]): boolean {
  const code = errorCode(error)
  return code !== undefined && codes.includes(code)
}
