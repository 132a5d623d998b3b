// Which header lines belong to one connection and are never passed on.

const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization', 'proxy-authentication-info', 'te',
  'transfer-encoding', 'upgrade', 'expect', 'http2-settings'])

/** Whether a header line, its name in lower case, is for this connection only. Each side of the proxy frames messages itself. */
export function isHopByHop (name: string, nominated: ReadonlySet<string> | undefined): boolean {
  return HOP_BY_HOP.has(name) || (nominated?.has(name) === true && !KEPT.has(name))
}

// A peer cannot have these removed by naming them in `Connection`: the message would mean something else without them.
const KEPT = new Set(['host', 'content-length', 'content-type', 'authorization', 'cookie', 'set-cookie', 'location', 'trailer'])
