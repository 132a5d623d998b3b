// Rules of environment variables.
import { InvalidRequest } from '../../../core/errors/common.ts'

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/
// The kernel takes far more than this for argv and envp together; the limit keeps one request from filling a row.
const MAX_TOTAL_BYTES = 256 * 1024

function isEnvName (name: string): boolean {
  return name.length <= 255 && NAME.test(name)
}

/** @throws InvalidRequest naming the variable */
export function checkEnv (place: string, env: Readonly<Record<string, string>> | undefined): void {
  let total = 0
  for (const [name, value] of Object.entries(env ?? {})) {
    if (!isEnvName(name)) throw InvalidRequest(`${place}: "${printable(name)}" is no name for a variable; use letters, digits and underscores, not starting with a digit`)
    total += Buffer.byteLength(name) + Buffer.byteLength(value) + 2
  }
  if (total > MAX_TOTAL_BYTES) throw InvalidRequest(`${place}: all variables together take ${total} bytes; at most ${MAX_TOTAL_BYTES} are allowed`)
}

/** A caller's text, cut and without control characters, to be put into a message. */
export function printable (text: string): string {
  const clean = text.replace(/\p{Cc}/gu, '?')
  return clean.length > 64 ? `${clean.slice(0, 64)}…` : clean
}
