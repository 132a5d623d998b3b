// TCP connections into guests, as the kernel of the namespace tracks them.
import type { InboundConnection } from './contract.ts'

/** `conntrack` leaves out what it cannot read, and lists the rest: one line for each. */
export const LIST_TCP = ['--dump', '--family', 'ipv4', '--proto', 'tcp'] as const

/** Entries that the kernel keeps for a while after both sides are done. */
const OVER = new Set(['TIME_WAIT', 'CLOSE', 'LAST_ACK', 'NONE'])

/**
 * Those that are answered by a guest, also when they were called by another address and port that was translated. Who calls is the original source.
 * @param text lines as `tcp 6 431999 ESTABLISHED src=A dst=B sport=1 dport=2 src=B dst=A sport=2 dport=1 [ASSURED] …`: first as it was called, then as it is answered
 */
export function inboundIn (text: string, guestOf: (ip: string) => string | undefined): InboundConnection[] {
  const found: InboundConnection[] = []
  for (const line of text.split('\n')) {
    const words = line.split(' ').filter((word) => word !== '')
    const state = words[3]
    if (words[0] !== 'tcp' || state === undefined) continue
    const [source, answeredBy] = valuesOf(words, 'src=')
    const instanceId = answeredBy === undefined ? undefined : guestOf(answeredBy)
    if (instanceId === undefined || source === undefined || source === answeredBy) continue
    const [sourcePort, port] = valuesOf(words, 'sport=').map(Number)
    if (sourcePort === undefined || port === undefined) continue
    found.push({ instanceId, source, sourcePort, port, open: !OVER.has(state) })
  }
  return found
}

/** Of the call, and of the answer. */
function valuesOf (words: readonly string[], key: string): string[] {
  return words.filter((word) => word.startsWith(key)).map((word) => word.slice(key.length))
}
