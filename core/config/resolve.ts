// Turns the written configuration into the one that the application runs with: overrides, defaults, checks, plugins and their order.
import type { TSchema } from 'typebox'
import { Value } from 'typebox/value'
import { CORE_KEYS } from '../container.ts'
import { checkPlugin, findBuiltIns, importPlugin, resolveModule } from '../plugins/discover.ts'
import { planGraph } from '../plugins/graph.ts'
import type { Plugin } from '../plugins/manifest.ts'
import { findTurnedOff } from '../plugins/turned-off.ts'
import { withDefaults } from './defaults.ts'
import { databaseProblems } from './database-url.ts'
import { ENVIRONMENT_OVERRIDES, type Environment, type EnvironmentOverride } from './environment.ts'
import { isMapping, jsonSchema, type Mapping } from './json-schema.ts'
import { listenProblems } from './listeners.ts'
import { dotted, findProblems, nearest, type ConfigProblem } from './problems.ts'
import { composeSchema, type Config } from './schema.ts'
import type { ConfigSource } from './source.ts'

/** All problems of a configuration, one sentence each. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly string[]

  constructor (problems: readonly string[]) {
    super(`the configuration cannot be used:\n${problems.map(problem => `  - ${problem}`).join('\n')}`)
    this.problems = problems
  }
}

export interface ResolveOptions {
  readonly environment: Environment
  /** folder of the built-in plugins, compiled */
  readonly builtIns: URL
  /** plugins given as values, by tests and by programs that embed Berth */
  readonly plugins?: readonly Plugin[]
}

export interface ResolvedConfig {
  readonly config: Config
  /** the schema that the configuration was checked against; it also marks secrets */
  readonly schema: TSchema
  /** the enabled plugins in start order */
  readonly plugins: readonly Plugin[]
  /** ids of the plugins that are turned off; none of them has been imported */
  readonly disabled: readonly string[]
  /** files to import, by id, that end what built-in plugins left running before they were turned off */
  readonly turnedOff: ReadonlyMap<string, string>
}

/** Checks everything and reports all problems at once, as a `ConfigError`. It imports plugins and runs no code of theirs. */
export async function resolveConfig (source: ConfigSource, options: ResolveOptions): Promise<ResolvedConfig> {
  const written = writtenPart(source)
  const found = await findPlugins(pluginEntries(written.value), source.folder, options)
  const check = checkValue(source, written, options.environment, schemasOf(found))
  // A plugin without a valid manifest provides nothing, so other plugins would seem to lack what is only broken.
  const plan = found.problems.length === 0 ? planGraph([...found.enabled.values()].map(plugin => plugin.manifest), CORE_KEYS, found.disabled) : { order: [], problems: [] }
  const problems = [...written.problems, ...found.problems, ...check.problems, ...plan.problems]
  if (check.config === undefined || problems.length > 0) throw new ConfigError(problems)
  const plugins = plan.order.flatMap(id => found.enabled.get(id) ?? [])
  return { config: check.config, schema: check.schema, plugins, disabled: found.disabled, turnedOff: findTurnedOff(found.disabledIndexes) }
}

/** The core sections only, for commands that start no plugin: no plugin is imported and `plugins` is not checked. */
export function resolveCoreConfig (source: ConfigSource, environment: Environment): Config {
  const written = writtenPart(source)
  const { plugins: _ignored, ...core } = written.value
  const check = checkValue(source, { ...written, value: core }, environment, {})
  const problems = [...written.problems, ...check.problems]
  if (check.config === undefined || problems.length > 0) throw new ConfigError(problems)
  return check.config
}

interface Written { readonly value: Mapping, readonly problems: readonly string[] }

/** An empty file means an empty configuration. */
function writtenPart ({ value, problems }: ConfigSource): Written {
  if (isMapping(value)) return { value, problems }
  return { value: {}, problems: value === null || value === undefined ? problems : [...problems, 'the configuration must be a mapping of keys to values'] }
}

function pluginEntries (value: Mapping): Mapping {
  return isMapping(value['plugins']) ? value['plugins'] : {}
}

interface FoundPlugins {
  readonly enabled: ReadonlyMap<string, Plugin>
  readonly disabled: readonly string[]
  /** the files of the built-in ones among them */
  readonly disabledIndexes: ReadonlyMap<string, string>
  readonly broken: readonly string[]
  readonly problems: readonly string[]
}

async function findPlugins (entries: Mapping, folder: string, options: ResolveOptions): Promise<FoundPlugins> {
  const builtIns = await findBuiltIns(options.builtIns)
  const given = new Map((options.plugins ?? []).map(plugin => [plugin.manifest.id, plugin]))
  const ids = [...new Set([...builtIns.keys(), ...given.keys(), ...Object.keys(entries)])].sort()
  const enabled = new Map<string, Plugin>()
  const disabled: string[] = []
  const broken: string[] = []
  const problems: string[] = []
  for (const id of ids) {
    const entry = isMapping(entries[id]) ? entries[id] : {}
    const value = given.get(id)
    const file = builtIns.get(id)
    const module = typeof entry['module'] === 'string' ? entry['module'] : undefined
    try {
      if (module === undefined && value === undefined && file === undefined) throw new Error(unknownPlugin(id, [...builtIns.keys(), ...given.keys()]))
      if (entry['enabled'] === false) disabled.push(id)
      else if (module !== undefined) enabled.set(id, await importPlugin(id, await resolveModule(module, folder)))
      else if (value !== undefined) enabled.set(id, checkPlugin(id, value))
      else if (file !== undefined) enabled.set(id, await importPlugin(id, file))
    } catch (error) {
      broken.push(id)
      problems.push(`plugin ${id} cannot be loaded: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  return { enabled, disabled, disabledIndexes: new Map([...builtIns].filter(([id]) => disabled.includes(id))), broken, problems }
}

function unknownPlugin (id: string, known: readonly string[]): string {
  const meant = nearest(id, known)
  return `there is no built-in plugin of this name${meant === undefined ? '' : ` (did you mean "${meant}"?)`}, and no "module" says where it is`
}

function schemasOf (found: FoundPlugins): Record<string, TSchema | undefined> {
  const unchecked = [...found.disabled, ...found.broken].map((id): [string, undefined] => [id, undefined])
  return Object.fromEntries([...[...found.enabled].map(([id, plugin]): [string, TSchema] => [id, plugin.manifest.config]), ...unchecked])
}

interface Checked { readonly config: Config | undefined, readonly schema: TSchema, readonly problems: readonly string[] }

function checkValue (source: ConfigSource, written: Written, environment: Environment, schemas: Record<string, TSchema | undefined>): Checked {
  const schema = composeSchema(schemas)
  const overrides = ENVIRONMENT_OVERRIDES.filter(({ name }) => (environment[name] ?? '') !== '')
  const value = withDefaults(jsonSchema(schema), overrides.reduce((at, override) => overlay(at, override, environment), written.value))
  const problems = findProblems(schema, value)
    .sort((a, b) => (source.locate(a.path)?.line ?? 0) - (source.locate(b.path)?.line ?? 0))
    .map(problem => sentence(problem, source, overrides))
  const config = Value.Check(schema, value) ? value : undefined
  const conflicts = config === undefined ? [] : [...listenProblems(config.server), ...databaseProblems(config.database)].map(problem => sentence(problem, source, overrides))
  return { config, schema, problems: [...problems, ...conflicts] }
}

function overlay (value: Mapping, { name, path: [section, key] }: EnvironmentOverride, environment: Environment): Mapping {
  const members = value[section] ?? {}
  // A section that is not a mapping stays as it is, so that it is reported.
  return isMapping(members) ? { ...value, [section]: { ...members, [key]: environment[name] } } : value
}

function sentence ({ path, rule }: ConfigProblem, source: ConfigSource, overrides: readonly EnvironmentOverride[]): string {
  const override = overrides.find(candidate => dotted(candidate.path) === dotted(path))
  if (override !== undefined) return `${override.name} ${rule}`
  const place = source.locate(path)
  return `${place === undefined ? '' : `${place.file}:${place.line}: `}${path.length === 0 ? 'the configuration' : dotted(path)} ${rule}`
}
