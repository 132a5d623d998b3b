// Takes secrets out of what an origin sends back: some answer with the very header that they were sent.
import type { HostRules } from './host-rules.ts'
import type { Counters } from '../log/counters.ts'

/** The text with each secret that was put into the request replaced by what the guest has in its place. */
export function withoutSecrets (text: string, rules: HostRules, counters: Counters): string {
  let clean = text
  for (const { text: secret, mock } of rules.echoes) {
    if (!clean.includes(secret)) continue
    clean = clean.replaceAll(secret, () => mock)
    counters.echoesReplaced++
  }
  return clean
}
