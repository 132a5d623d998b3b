// Takes secrets out of what an origin sends back: some origins answer with the very header that a request had.
import type { HostRules } from './host-rules.ts'
import type { Counters } from '../log/counters.ts'

/** The text with each secret that was put into the request replaced by its mock. */
export function withoutSecrets (text: string, rules: HostRules, counters: Counters): string {
  let clean = text
  for (const { text: secret, mock } of rules.echoes) {
    if (!clean.includes(secret)) continue
    clean = clean.replaceAll(secret, () => mock)
    counters.echoesReplaced++
  }
  return clean
}
