// Paths of the API, with every part escaped.

/** @example path`/instances/${'a b'}/logs` is `/instances/a%20b/logs` */
export function path (texts: TemplateStringsArray, ...values: readonly string[]): string {
  return texts.reduce((before, text, index) => `${before}${encodeURIComponent(values[index - 1] ?? '')}${text}`)
}

/** The path of an API path at this server, whose own URL may have a path, too. */
export function addressOf (server: URL, path: string): URL {
  return new URL(`${server.pathname.replace(/\/$/, '')}${path}`, server)
}

export type Query = Readonly<Record<string, string | number | boolean | Readonly<Record<string, string>> | undefined>>

/** A query string with its question mark; an object becomes `key[name]=value`. */
export function queryText (query: Query): string {
  const parameters = new URLSearchParams()
  for (const [key, value] of Object.entries(query)) {
    if (value === undefined) continue
    if (typeof value === 'object') for (const [name, text] of Object.entries(value)) parameters.append(`${key}[${name}]`, text)
    else parameters.append(key, String(value))
  }
  const text = parameters.toString()
  return text === '' ? '' : `?${text}`
}
