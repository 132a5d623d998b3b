// Where a listener listens: at an address and port, at a path, or on a socket that systemd passed.

export type Place = { readonly kind: 'address', readonly host: string, readonly port: number } | { readonly kind: 'path', readonly path: string } | { readonly kind: 'descriptor', readonly descriptor: number }

/** Reads a place of the configuration. Throws an error with a whole sentence when it is invalid, or names a socket that was not passed. */
export function parsePlace (written: string, inherited: ReadonlyMap<string, number>): Place {
  if (written.startsWith('fd:')) {
    const descriptor = inherited.get(written.slice(3))
    if (descriptor === undefined) throw new Error(`no socket named ${written.slice(3)} was passed to this process`)
    return { kind: 'descriptor', descriptor }
  }
  if (written.startsWith('/')) return { kind: 'path', path: written }
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(written) ?? []
  const host = bracketed ?? plain
  if (host === undefined || port === undefined) throw new Error(`${written} is neither address:port, nor a path, nor fd:NAME`)
  return { kind: 'address', host, port: Number(port) }
}
