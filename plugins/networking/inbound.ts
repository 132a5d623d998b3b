// TCP connections into guests, as the kernel of the namespace tracks them.
import type { InboundConnection } from './contract.ts'

/** `conntrack` skips entries that it cannot read, and lists the rest, one per line. */
export const LIST_TCP = ['--dump', '--family', 'ipv4', '--proto', 'tcp'] as const

/** States of entries that the kernel keeps for a while after both sides are done. */
const OVER = new Set(['TIME_WAIT', 'CLOSE', 'LAST_ACK', 'NONE'])

/**
 * The connections that a guest answers, also when the called address and port were translated. The caller is the original source.
 * @param text lines such as `tcp 6 431999 ESTABLISHED src=A dst=B sport=1 dport=2 src=B dst=A sport=2 dport=1 [ASSURED] …`: first the original direction, then the reply
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

/** The values of the original direction, and of the reply. */
function valuesOf (words: readonly string[], key: string): string[] {
  return words.filter((word) => word.startsWith(key)).map((word) => word.slice(key.length))
}
