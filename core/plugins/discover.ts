// Finds plugins on disk and imports those that are enabled. A plugin that is turned off is never imported (turned-off.ts ends what it may have left running).
import { existsSync } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { isMapping } from '../config/json-schema.ts'
import { CORE_MIGRATIONS } from '../data/database.ts'
import { packageRoot } from '../package-root.ts'
import type { Plugin } from './manifest.ts'

/** The folder of the built-in plugins beside core, compiled. */
export const builtInFolder = new URL('../../plugins/', import.meta.url)

/** The built-in plugins: each folder with an `index.js`, by folder name, which is the plugin's id. */
export async function findBuiltIns (folder: URL): Promise<ReadonlyMap<string, string>> {
  const path = fileURLToPath(folder)
  const entries = existsSync(path) ? await readdir(path, { withFileTypes: true }) : []
  const found = entries.filter(entry => entry.isDirectory()).map((entry): [string, string] => [entry.name, join(path, entry.name, 'index.js')])
  return new Map(found.filter(([, file]) => existsSync(file)).sort(([a], [b]) => a < b ? -1 : 1))
}

/**
 * The file of a plugin's `module`, which is a path (absolute, or relative to `folder`) to a file or to a folder, or the
 * name of a package that is installed beside the configuration file, above it, or with Berth itself.
 */
export async function resolveModule (module: string, folder: string): Promise<string> {
  const isPath = module.startsWith('.') || isAbsolute(module)
  const place = isPath ? resolve(folder, module) : packageFolder(module, [folder, packageRoot])
  if (place === undefined) throw new Error(`the package ${module} is not installed in ${folder} or above it`)
  if (!existsSync(place)) throw new Error(`${place} does not exist`)
  const entry = (await stat(place)).isDirectory() ? join(place, await entryOf(place)) : place
  if (!existsSync(entry)) throw new Error(`${entry} does not exist`)
  return entry
}

/** Imports a module and returns the plugin that it exports. Rejects with everything that is wrong with it. */
export async function importPlugin (id: string, file: string): Promise<Plugin> {
  const module: unknown = await import(pathToFileURL(file).href)
  const plugin = isNamespace(module) ? module['plugin'] : undefined
  if (plugin === undefined) throw new Error(`${file} does not export "plugin"`)
  return checkPlugin(id, plugin)
}

/** Checks that a value is a plugin. Throws with everything that is wrong with it. */
export function checkPlugin (id: string, value: unknown): Plugin {
  const problems = pluginProblems(id, value)
  if (problems.length > 0 || !isPlugin(value)) throw new Error(`it is not a plugin: ${problems.join('; ')}`)
  return value
}

const Keys = Type.Array(Type.String({ minLength: 1 }))
const ManifestShape = Type.Object({
  id: Type.String({ pattern: '^[a-z][a-z0-9]*(-[a-z0-9]+)*$' }),
  provides: Keys,
  requires: Keys,
  optional: Type.Optional(Keys),
  emits: Type.Optional(Keys),
  listens: Type.Optional(Keys),
  scopes: Type.Optional(Type.Array(Type.String({ pattern: '^[a-z][a-z0-9-]*:[a-z][a-z0-9-]*$' }))),
  tags: Type.Optional(Type.Array(Type.Object({ name: Type.String({ minLength: 1 }), description: Type.String({ minLength: 1 }), place: Type.Optional(Type.Number()) }))),
  hostPackages: Type.Optional(Type.Array(Type.Object({ name: Type.String({ minLength: 1 }), commands: Keys, oldest: Type.Optional(Type.String({ pattern: '^\\d+(\\.\\d+){1,2}$' })), versionOption: Type.Optional(Type.String({ minLength: 1 })), need: Type.Optional(Type.Enum(['server', 'network', 'tests'])), use: Type.Optional(Type.String({ minLength: 1 })), proof: Type.Optional(Type.String({ pattern: '^/' })) }))),
  fills: Type.Optional(Type.Object({ slot: Type.String({ minLength: 1 }), name: Type.String({ minLength: 1 }) })),
  config: Type.Object({ type: Type.Literal('object'), additionalProperties: Type.Literal(false) })
})

function pluginProblems (id: string, value: unknown): string[] {
  if (!isMapping(value)) return ['the export "plugin" is not an object']
  const manifest = value['manifest']
  if (!isMapping(manifest)) return ['it has no manifest']
  const shape = Value.Errors(ManifestShape, manifest).map(error => `manifest${error.instancePath.replaceAll('/', '.')} ${error.message}`)
  const misplaced = ['register', 'start', 'routes', 'stop'].filter(name => value[name] !== undefined)
    .map(name => `${name} stands beside create; what a plugin does is what its create returns`)
  return [
    ...shape,
    // A plugin's record of migrations bears its id.
    ...manifest['id'] === CORE_MIGRATIONS.id ? [`the id ${CORE_MIGRATIONS.id} is Berth's own`] : [],
    ...typeof manifest['id'] === 'string' && manifest['id'] !== id ? [`its id is "${manifest['id']}", but it is named "${id}"`] : [],
    ...manifest['migrations'] === undefined || manifest['migrations'] instanceof URL ? [] : ['manifest.migrations is not a URL'],
    ...['create', 'check'].filter(name => value[name] !== undefined && typeof value[name] !== 'function').map(name => `${name} is not a function`),
    ...misplaced
  ]
}

function isPlugin (value: unknown): value is Plugin {
  return isMapping(value) && isMapping(value['manifest']) && Value.Check(ManifestShape, value['manifest'])
}

function isNamespace (value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function packageFolder (name: string, starts: readonly string[]): string | undefined {
  for (const start of starts) {
    for (let at = start; ; at = dirname(at)) {
      const candidate = join(at, 'node_modules', name)
      if (existsSync(candidate)) return candidate
      if (at === dirname(at)) break
    }
  }
  return undefined
}

/** The entry of a package for `import`: `exports`, then `main`, then index.js. */
async function entryOf (folder: string): Promise<string> {
  const file = join(folder, 'package.json')
  if (!existsSync(file)) return 'index.js'
  const content: unknown = JSON.parse(await readFile(file, 'utf8'))
  if (!isMapping(content)) return 'index.js'
  return exportTarget(content['exports']) ?? (typeof content['main'] === 'string' ? content['main'] : 'index.js')
}

function exportTarget (exports: unknown): string | undefined {
  if (typeof exports === 'string') return exports
  if (!isMapping(exports)) return undefined
  return exportTarget(exports['.'] ?? exports['import'] ?? exports['node'] ?? exports['default'])
}
