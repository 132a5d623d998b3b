// The API key whose request the running code works for. Code that divides something between callers reads it, far from the request.
import { AsyncLocalStorage } from 'node:async_hooks'

const current = new AsyncLocalStorage<string>()

/** The id of the API key whose request started the running code; empty for what the server does by itself. */
export function actingKey (): string {
  return current.getStore() ?? ''
}

/** Runs `work`, and everything that it starts, for the key. */
export function actFor<T> (keyId: string, work: () => T): T {
  return current.run(keyId, work)
}
