// Makes examples of requests and answers from their schemas: a field that has an example shows it, any other one shows a value that fits its type and its name.

type Schema = Readonly<Record<string, unknown>>
type Definitions = Readonly<Record<string, unknown>>

const MOST_DEEP = 12
const TIME = '2026-01-31T12:00:00.000Z'
const ID = 'tz4a98xxat96iws9zmbrgj3a'

/** By the name of a field, used where the field's schema allows it. */
const KNOWN: Readonly<Record<string, unknown>> = {
  id: ID,
  name: 'web',
  image: 'docker.io/library/nginx:latest',
  target: 'registry.example.com/team/app:latest',
  size: '512MB',
  overlay_size: '1GB',
  digest: `sha256:${'0123456789abcdef'.repeat(4)}`,
  pci_address: '0000:a2:00.0',
  hostname: 'app.example.com',
  message: 'instance web does not exist',
  scopes: ['instance:read'],
  tags: { team: 'backend' },
  env: { LANG: 'C.UTF-8' },
  mount_path: '/data',
  path: '/etc/hostname',
  cmd: ['nginx', '-g', 'daemon off;'],
  hypervisor: 'qemu',
  target_hypervisor: 'qemu',
  source_hypervisor: 'qemu',
  version: '1.0.0',
  created_at: TIME,
  interval: '1h',
  ttl: '24h',
  expires_in: '30d',
  url: 'https://ci.example.com/hooks/berth'
}

/** An example that fits the schema, as far as its keywords tell. */
export function exampleOf (schema: unknown, definitions: Definitions, name = '', depth = 0): unknown {
  if (typeof schema !== 'object' || schema === null || depth > MOST_DEEP) return {}
  const own = schema as Schema
  if (typeof own['$ref'] === 'string') return exampleOf(definitions[own['$ref'].split('/').at(-1) ?? ''], definitions, name, depth + 1)
  const [stated] = Array.isArray(own['examples']) ? own['examples'] : []
  if (stated !== undefined) return stated
  if ('const' in own) return own['const']
  if (own['default'] !== undefined) return own['default']
  if (Array.isArray(own['enum'])) return own['enum'][0]
  const choices = [own['anyOf'], own['oneOf']].find(Array.isArray)
  if (choices !== undefined) return exampleOf(choices[0], definitions, name, depth + 1)
  const type = Array.isArray(own['type']) ? own['type'][0] : own['type']
  if (type === 'object') return exampleObject(own, definitions, name, depth)
  if (type === 'array') return exampleArray(own, definitions, name, depth)
  if (type === 'string') return exampleText(own, name)
  if (type === 'integer' || type === 'number') return exampleNumber(own)
  return type === 'boolean' ? true : type === 'null' ? null : {}
}

/** Bodies show the required fields, and answers show all. */
function exampleObject (schema: Schema, definitions: Definitions, name: string, depth: number): unknown {
  const fields = Object.entries(isMapping(schema['properties']) ? schema['properties'] : {})
  if (fields.length === 0) return fits(schema, KNOWN[name]) ? KNOWN[name] : {}
  const required: readonly unknown[] = Array.isArray(schema['required']) ? schema['required'] : []
  const shown = required.length > 0 ? fields.filter(([field]) => required.includes(field)) : fields.slice(0, 1)
  return Object.fromEntries(shown.map(([field, of]) => [field, exampleOf(of, definitions, field, depth + 1)]))
}

function exampleArray (schema: Schema, definitions: Definitions, name: string, depth: number): unknown {
  const known = KNOWN[name]
  if (Array.isArray(known)) return known
  const item = exampleOf(schema['items'], definitions, name.endsWith('s') ? name.slice(0, -1) : name, depth + 1)
  return Array.from({ length: Math.max(1, Number(schema['minItems'] ?? 1)) }, () => item)
}

function exampleText (schema: Schema, name: string): unknown {
  if (schema['format'] === 'date-time') return TIME
  const pattern = typeof schema['pattern'] === 'string' ? new RegExp(schema['pattern'], 'u') : undefined
  const takes = (text: string): boolean => text.length >= Number(schema['minLength'] ?? 0) && text.length <= Number(schema['maxLength'] ?? Infinity) && (pattern === undefined || pattern.test(text))
  const known = KNOWN[name]
  return [typeof known === 'string' ? known : '', name.endsWith('_id') ? ID : '', 'web', '512MB', '1h', '10Mbps', '0'.repeat(Math.max(1, Number(schema['minLength'] ?? 1)))].find((text) => text !== '' && takes(text)) ?? 'web'
}

function exampleNumber (schema: Schema): number {
  return Math.min(Math.max(Number(schema['minimum'] ?? 1), 1), Number(schema['maximum'] ?? Infinity))
}

function fits (schema: Schema, value: unknown): boolean {
  return isMapping(value) && (schema['additionalProperties'] !== false || schema['patternProperties'] !== undefined)
}

function isMapping (value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
