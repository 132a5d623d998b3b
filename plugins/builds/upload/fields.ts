// Converts the texts of a form to the types of the API's schema: a text that cannot be converted stays a text, and the schema refuses it.
import { InvalidRequest } from '../../../core/errors/common.ts'
import { checkJsonSize } from '../../../core/http/json-size.ts'

const INTEGERS: readonly string[] = ['cpus', 'memory_mb', 'timeout_seconds']
const BOOLEANS: readonly string[] = ['is_admin_build', 'no_cache']
const JSONS: Readonly<Record<string, string>> = {
  secrets: 'an array such as [{"id": "npm_token"}]',
  tags: 'an object such as {"team": "backend"}',
  build_args: 'an object such as {"VERSION": "1.2"}'
}
/** `tags[team]=backend`, as clients write objects in forms */
const ENTRY = /^(tags|build_args)\[([^\]]*)\]$/

/** @throws invalid_request that names the field whose text is not JSON, or the limit on what is in them, which is that of other bodies */
export function typedFields (texts: ReadonlyMap<string, string>): Record<string, unknown> {
  const values = new Map<string, unknown>()
  const entries = new Map<string, [string, string][]>()
  for (const [name, text] of texts) {
    const [, field, key] = ENTRY.exec(name) ?? []
    if (field === undefined || key === undefined) values.set(name, typed(name, text))
    else entries.set(field, [...entries.get(field) ?? [], [key, text]])
  }
  for (const [field, pairs] of entries) {
    if (values.has(field)) throw InvalidRequest(`${field} is given twice, as JSON and as single entries`)
    values.set(field, Object.fromEntries(pairs))
  }
  const fields = Object.fromEntries(values)
  checkJsonSize(fields)
  return fields
}

function typed (name: string, text: string): unknown {
  if (INTEGERS.includes(name)) return /^\d{1,15}$/.test(text) ? Number(text) : text
  if (BOOLEANS.includes(name)) return text === 'true' ? true : text === 'false' ? false : text
  const example = Object.hasOwn(JSONS, name) ? JSONS[name] : undefined
  if (example === undefined) return text
  const value = parse(name, text, example)
  // Here, too: the next one is parsed only when this one is none too many.
  checkJsonSize(value, name)
  return value
}

function parse (name: string, text: string, example: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw InvalidRequest.from(error, `${name} must be JSON, ${example}`)
  }
}
