// Which headers a rule may set, and to which values, so that no rule can break the framing or the routing of a request.
import { FIELD_NAME, FIELD_VALUE } from './field.ts'

const MAX_NAME_LENGTH = 256
const FORBIDDEN = new Set(['host', 'content-length', 'transfer-encoding', 'connection', 'keep-alive', 'upgrade', 'te', 'trailer', 'expect', 'forwarded', 'via',
  'http2-settings', 'max-forwards', 'content-encoding', 'date', 'alt-svc', 'alt-used', '__proto__'])
const FORBIDDEN_PREFIXES = ['proxy-', 'x-forwarded-', 'sec-websocket-']

/** Many origins treat `_` and `-` as the same character (CGI turns both into `_`), so they are the same here too. */
export function headerKey (name: string): string {
  return name.toLowerCase().replaceAll('_', '-')
}

/** Why a rule may not set this header; `undefined` when it may. */
export function headerNameFault (name: string): string | undefined {
  if (!FIELD_NAME.test(name) || name.length > MAX_NAME_LENGTH) return 'is not a header name'
  const key = headerKey(name)
  const forbidden = FORBIDDEN.has(key) || FORBIDDEN.has(name.toLowerCase()) || FORBIDDEN_PREFIXES.some(prefix => key.startsWith(prefix))
  return forbidden ? 'belongs to the transport and cannot be set by a rule' : undefined
}

/** Whether the text can be a header's value as it is. White space at its ends is refused, since receivers drop it. */
export function isFieldValue (text: string): boolean {
  return FIELD_VALUE.test(text) && text.trim() === text
}
