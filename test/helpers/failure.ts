// What a call rejects with, as a value that can be matched.

/** The error that a promise rejects with. Fails when it resolves. */
export async function failureOf (promise: PromiseLike<unknown>): Promise<unknown> {
  const outcome = await Promise.resolve(promise).then(value => ({ value }), (error: unknown) => ({ error }))
  if ('error' in outcome) return outcome.error
  throw new Error(`it succeeded with ${JSON.stringify(outcome.value)}`)
}
