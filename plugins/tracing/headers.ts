// Headers for the collector, from a file, since they contain its key: one `Name: value` a line; empty lines and those that begin with a # are ignored.
import { open } from 'node:fs/promises'

const MOST_BYTES = 16 * 1024
const NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/
const VALUE = /^[\x20-\x7e]{0,8000}$/
/** headers that the exporter itself sets */
const OWN = new Set(['content-type', 'content-length', 'content-encoding', 'host', 'connection', 'transfer-encoding'])
const FIELD = 'plugins.tracing.config.headersFile'

/** @throws Error with field, line and rule, and without any value */
export async function readHeaders (path: string): Promise<Record<string, string>> {
  const headers: Record<string, string> = {}
  for (const [index, line] of (await textOf(path)).split('\n').entries()) {
    const text = line.trim()
    if (text === '' || text.startsWith('#')) continue
    const colon = text.indexOf(':')
    const name = text.slice(0, Math.max(colon, 0))
    const value = text.slice(colon + 1).trim()
    const fault = (rule: string): Error => new Error(`${FIELD}: line ${index + 1} of ${path} ${rule}`)
    if (!NAME.test(name) || !VALUE.test(value)) throw fault('must be "Name: value", of printable ASCII')
    if (OWN.has(name.toLowerCase())) throw fault(`sets ${name}, which belongs to the transport`)
    headers[name] = value
  }
  return headers
}

async function textOf (path: string): Promise<string> {
  const file = await open(path).catch((error: unknown) => { throw new Error(`${FIELD}: ${path} cannot be read`, { cause: error }) })
  try {
    const { mode, size } = await file.stat()
    if ((mode & 0o007) !== 0) throw new Error(`${FIELD}: others can read ${path}; chmod o= it`)
    if (size > MOST_BYTES) throw new Error(`${FIELD}: ${path} has more than ${MOST_BYTES} bytes`)
    return await file.readFile('utf8')
  } finally {
    await file.close()
  }
}
