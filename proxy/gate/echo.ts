// Takes secrets out of what an origin sends back: some origins answer with the very header that a request had.
import type { HostRules } from './host-rules.ts'
import type { Counters } from '../log/counters.ts'

/** What one character of a decoded text was written as. */
const WRITTEN = /%u[0-9a-f]{4}|%[0-9a-f]{2}|[^]/gi

/** The text with each secret that was put into the request replaced by its mock. */
export function withoutSecrets (text: string, rules: HostRules, counters: Counters): string {
  if (text.length < rules.shortestEcho) return text
  let clean = text
  let decoded = decode(clean)
  for (const { text: secret, mock } of rules.echoes) {
    if (secret.length > clean.length) continue
    const isWritten = clean.includes(secret)
    if (!isWritten && decoded?.includes(secret) !== true) continue
    // Also as it is: behind a % that encodes nothing, its first two characters may be digits.
    if (isWritten) clean = clean.replaceAll(secret, () => mock)
    clean = replaceEncoded(clean, secret, mock)
    decoded = decode(clean)
    counters.echoesReplaced++
  }
  return clean
}

/** Whether the name of a header, in lower case, holds one of the secrets, in whatever case: then its line cannot be passed on. */
export function namesSecret (name: string, rules: HostRules): boolean {
  if (name.length < rules.shortestEcho) return false
  const decoded = decode(name)?.toLowerCase()
  for (const secret of rules.namesakes) {
    if (secret.length > name.length) return false
    if (name.includes(secret) || decoded?.includes(secret) === true) return true
  }
  return false
}

/**
 * The text with each %XX read as the byte that it stands for; undefined when there is none. Encoders differ in what they encode and in the case of the digits, so a text is
 * decoded rather than searched for each one's form: an expression for all forms of a long secret is more than V8 compiles. `unescape` takes any text, and is quicker than a loop.
 */
function decode (text: string): string | undefined {
  return text.includes('%') ? unescape(text) : undefined
}

function replaceEncoded (text: string, secret: string, mock: string): string {
  const decoded = decode(text)
  if (decoded === undefined) return text
  const written = text.match(WRITTEN) ?? []
  let clean = ''
  let from = 0
  for (let at = decoded.indexOf(secret); at !== -1; at = decoded.indexOf(secret, from)) {
    clean += written.slice(from, at).join('') + mock
    from = at + secret.length
  }
  return clean + written.slice(from).join('')
}
