// A server that is away for a moment, as while it is upgraded: a command that follows or waits goes on with the next one.
import { EXIT } from '../exit-codes.ts'
import { Failure } from '../failure.ts'
import { Refusal } from './failures.ts'

/** After that it is asked again. */
export const AGAIN_MS = 1000
/** How long it may be away. */
export const PATIENCE_MS = 60_000

/** Whether it cannot be reached, or says that it is about to end. */
export function isAway (error: unknown): boolean {
  return error instanceof Failure && (error.exitCode === EXIT.unreachable || (error instanceof Refusal && error.status === 503))
}
