// config/berth.yaml says what the program does.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { Type } from 'typebox'
import { parse } from 'yaml'
import { documentDefaults } from '../../../core/config/document.ts'
import { isMapping, jsonSchema, schemaOf, type JsonSchema } from '../../../core/config/json-schema.ts'
import { resolveConfig } from '../../../core/config/resolve.ts'
import { sourceOfFile, sourceOfValue } from '../../../core/config/source.ts'
import { packageRoot } from '../../../core/package-root.ts'
import { builtInFolder } from '../../../core/plugins/discover.ts'
import { DELETED } from '../../../setup/structure/deleted.ts'
import { testFolder } from '../../helpers/folder.ts'

const options = { environment: {}, builtIns: builtInFolder }

/** config/berth.yaml, without the sections of plugins that were deleted from this checkout. */
async function written (): Promise<string> {
  const text = await readFile(join(packageRoot, 'config/berth.yaml'), 'utf8')
  return DELETED.reduce((rest, plugin) => rest.replace(new RegExp(`^ {2}${plugin}:\\n(?: {4}.*\\n)*`, 'm'), ''), text)
}

t.test('config/berth.yaml equals the built-in defaults, key by key and word by word', async (t) => {
  const builtIn = await resolveConfig(sourceOfValue({}, '/'), options)
  const text = await written()
  const file = join(testFolder(t, { 'berth.yaml': text }), 'berth.yaml')
  t.strictSame((await resolveConfig(await sourceOfFile(file), options)).config, builtIn.config)
  t.equal(text, documentDefaults(jsonSchema(builtIn.schema)), 'run `berth print-config --defaults > config/berth.yaml`')
})

t.test('every key of the configuration has a description', async (t) => {
  const { schema } = await resolveConfig(sourceOfValue({}, '/'), options)
  t.strictSame(undescribed(jsonSchema(schema), []), [])
})

t.test('an optional key without a default is written as a comment', async (t) => {
  const schema = Type.Object({ a: Type.Object({ b: Type.Optional(Type.String({ description: 'a b' })), c: Type.Array(Type.String(), { default: ['x y', '#'], description: 'some c' }) }) })
  const text = documentDefaults(jsonSchema(schema))
  t.match(text, /\na:\n {2}# b: {2}# a b\n {2}c: \[ x y, "#" \] {2}# some c\n$/)
  t.strictSame(parse(text), { a: { c: ['x y', '#'] } })
})

/** Leaves only: a section is described by what stands in it. */
function undescribed (schema: JsonSchema, path: readonly string[]): string[] {
  const members = isMapping(schema['properties']) ? Object.entries(schema['properties']) : []
  if (members.length === 0) return typeof schema['description'] === 'string' || path.at(-1) === 'config' ? [] : [path.join('.')]
  return members.flatMap(([key, member]) => undescribed(schemaOf(member) ?? {}, [...path, key]))
}
