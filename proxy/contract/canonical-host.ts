// The one function with which this program reads a host name: configuration, SNI, Host, resolver, pools and log all compare its results.
import { isIPv4, isIPv6 } from 'node:net'

export interface CanonicalHost {
  /** lower case, without a closing dot; an IPv6 address without brackets */
  readonly name: string
  /** 0 for a name, 4 or 6 for an address */
  readonly family: 0 | 4 | 6
}

export interface Authority extends CanonicalHost {
  /** absent when none was written */
  readonly port: number | undefined
}

const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
// Other programs read such a last label as a number, and the whole name as an address: `127.1`, `0x7f.0.0.1`, `2130706433`.
const NUMERIC_LABEL = /^(?:[0-9]+|0x[0-9a-f]*)$/
const PORT = /^[0-9]{1,5}$/

/** Reads a name or an address without brackets and port; `undefined` for everything that two programs might read in two ways. */
export function canonicalHost (text: string): CanonicalHost | undefined {
  const lower = text.toLowerCase()
  const name = lower.endsWith('.') ? lower.slice(0, -1) : lower
  if (name.length === 0 || name.length > 253) return undefined
  if (isIPv4(name)) return name === lower ? { name, family: 4 } : undefined
  const labels = name.split('.')
  if (!labels.every(label => LABEL.test(label))) return undefined
  return NUMERIC_LABEL.test(labels.at(-1) ?? '') ? undefined : { name, family: 0 }
}

/** Reads what a `Host` header or `:authority` holds: a name or an address, and perhaps a port. */
export function parseAuthority (text: string): Authority | undefined {
  if (text.startsWith('[')) return parseBracketed(text)
  const colon = text.indexOf(':')
  const port = colon === -1 ? undefined : parsePort(text.slice(colon + 1))
  if (port === null) return undefined
  const host = canonicalHost(colon === -1 ? text : text.slice(0, colon))
  return host && { name: host.name, family: host.family, port }
}

function parseBracketed (text: string): Authority | undefined {
  const end = text.indexOf(']')
  const rest = text.slice(end + 1)
  const address = end === -1 ? undefined : canonicalIPv6(text.slice(1, end))
  if (address === undefined || (rest !== '' && !rest.startsWith(':'))) return undefined
  const port = rest === '' ? undefined : parsePort(rest.slice(1))
  return port === null ? undefined : { name: address, family: 6, port }
}

/** The shortest form of an IPv6 address; zones are refused, since they mean something only on one machine. */
export function canonicalIPv6 (text: string): string | undefined {
  if (!isIPv6(text) || text.includes('%')) return undefined
  return new URL(`http://[${text}]`).hostname.slice(1, -1)
}

/** `null` for an invalid port. */
function parsePort (text: string): number | null {
  const port = PORT.test(text) ? Number(text) : 0
  return port > 0 && port < 65536 ? port : null
}
