// Which header lines belong to one connection and are never passed on.

const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization', 'proxy-authentication-info', 'te',
  'transfer-encoding', 'upgrade', 'expect', 'http2-settings'])

/** Whether a header line, its name in lower case, ends here. Both ends frame messages themselves. */
export function isHopByHop (name: string, nominated: ReadonlySet<string> | undefined): boolean {
  return HOP_BY_HOP.has(name) || (nominated?.has(name) === true && !KEPT.has(name))
}

// A peer cannot have these taken out by naming them: the message would mean something else without them.
const KEPT = new Set(['host', 'content-length', 'content-type', 'authorization', 'cookie', 'set-cookie', 'location', 'trailer'])
