// Whose request the running code works for: asked by what divides something between callers, far from the request.
import { AsyncLocalStorage } from 'node:async_hooks'

const current = new AsyncLocalStorage<string>()

/** The id of the API key whose request set the running code off; empty for what the server does by itself. */
export function actingKey (): string {
  return current.getStore() ?? ''
}

/** Runs `work`, and all that it sets off, for the key. */
export function actFor<T> (keyId: string, work: () => T): T {
  return current.run(keyId, work)
}
