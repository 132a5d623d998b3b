// Recognises errors of the system by their code.

/** Whether an unknown thrown value is a system error with one of these codes. */
export function hasCode (error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' && codes.includes(error.code)
}
