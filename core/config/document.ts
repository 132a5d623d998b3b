// Writes the documented default configuration: every key at its default, each with its description, straight from the schemas.
import { stringify } from 'yaml'
import { isMapping, schemaOf, type JsonSchema } from './json-schema.ts'

const HEADER = `# Berth's configuration: every key at its default. A file of your own needs only the keys that it changes.
# An unknown key is an error. Durations: 500ms, 30s, 1h30m. Sizes: 64KB, 512MB, 2GB (binary units).
# A line that begins with "# " and a key has no default. \`berth print-config --defaults\` writes this file.`

const PLUGINS_HEADER = `# Every built-in plugin is on by default. \`enabled: false\` turns one off: it is not even loaded, and its routes are 404.
# \`onFailure: continue\` lets the server start without a plugin whose tables or start fail; routes that cannot be
# mounted keep the server from its start in any case. A plugin that is not built in is named by
# \`module\`: a path (relative to this file) or the name of an installed package.`

/** @param schema of a whole configuration, as `composeSchema` makes it */
export function documentDefaults (schema: JsonSchema): string {
  const sections = Object.entries(membersOf(schema)).map(([key, section]) =>
    [...key === 'plugins' ? [PLUGINS_HEADER] : [], ...describe(key, section, '')].join('\n'))
  return `${[HEADER, ...sections].join('\n\n')}\n`
}

function describe (key: string, schema: JsonSchema, indent: string): string[] {
  const members = Object.entries(membersOf(schema))
  if (members.length > 0) {
    return [`${indent}${key}:${comment(schema)}`, ...members.flatMap(([name, member]) => describe(name, member, `${indent}  `))]
  }
  const value = schema['default'] ?? (schema['type'] === 'object' ? {} : undefined)
  if (value === undefined) return [`${indent}# ${key}:${comment(schema)}`]
  return [`${indent}${key}: ${stringify(value, { collectionStyle: 'flow', lineWidth: 0 }).trimEnd()}${comment(schema)}`]
}

function comment (schema: JsonSchema): string {
  const text = schema['description']
  return typeof text === 'string' ? `  # ${text.replaceAll('\n', ' ')}` : ''
}

function membersOf (schema: JsonSchema): Record<string, JsonSchema> {
  const properties = isMapping(schema['properties']) ? schema['properties'] : {}
  return Object.fromEntries(Object.entries(properties).flatMap(([key, raw]) => {
    const member = schemaOf(raw)
    return member === undefined || member['undocumented'] === true ? [] : [[key, member]]
  }))
}
