// What the operator reads when a configuration is wrong, and what the server gets when it is right.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { Type } from 'typebox'
import { Duration, LongDuration } from '../../../core/config/schema.ts'
import { ENVIRONMENT_OVERRIDES, type Environment } from '../../../core/config/environment.ts'
import { ConfigError, resolveConfig, resolveCoreConfig, type ResolvedConfig } from '../../../core/config/resolve.ts'
import { sourceOfFile, sourceOfValue } from '../../../core/config/source.ts'
import { packageRoot } from '../../../core/package-root.ts'
import { builtInFolder, findBuiltIns, importPlugin } from '../../../core/plugins/discover.ts'
import { definePlugin, type Plugin } from '../../../core/plugins/manifest.ts'
import { DELETED } from '../../../setup/structure/deleted.ts'
import { noBuiltIns, temporaryFolder } from '../bare-app.ts'

const sized = definePlugin({
  manifest: {
    id: 'sized',
    provides: [],
    requires: ['log'],
    config: Type.Object({
      count: Type.Integer({ default: 2, minimum: 1 }),
      mode: Type.Union([Type.Literal('fast'), Type.Literal('safe')], { default: 'safe' }),
      password: Type.String({ default: '', secret: true, maxLength: 3 }),
      limits: Type.Record(Type.String(), Type.Object({ depth: Type.Integer({ default: 7 }) }, { additionalProperties: false }), { default: {} })
    }, { additionalProperties: false })
  }
})

const resolve = (value: unknown, { environment = {}, plugins = [], folder = '/', builtIns = noBuiltIns }: { environment?: Environment, plugins?: Plugin[], folder?: string, builtIns?: URL } = {}): Promise<ResolvedConfig> =>
  resolveConfig(sourceOfValue(value, folder), { environment, builtIns, plugins })

async function problemsOf (result: Promise<unknown>): Promise<readonly string[]> {
  try {
    await result
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
  throw new Error('the configuration was accepted')
}

t.test('an empty configuration gives the defaults', async (t) => {
  for (const empty of [{}, null, undefined, { server: null, plugins: {} }, { server: { listen: null } }]) {
    const { config } = await resolve(empty)
    t.strictSame(config, {
      server: {
        listen: '127.0.0.1:8080', dataDir: '/var/lib/berth', apiKey: '', stopInstancesOnExit: false, drainTimeout: '10s', startTimeout: '30s',
        stopTimeout: '10s', bodyLimit: '1MB', minFree: '1GB', minFreeInodes: 10_000, cors: { origins: [] }, rateLimit: { requests: 0, per: '1m' }, metrics: { enabled: true, listen: '127.0.0.1:9464' }, tls: {}
      },
      database: { url: 'sqlite:berth.db', keepCopies: 3 },
      log: { level: 'info', recent: '4MB' },
      plugins: {}
    })
  }
})

t.test('a data folder with a colon is refused, at which skopeo would end the path of an image', async (t) => {
  t.match(await problemsOf(resolve({ server: { dataDir: '/var/lib/berth:2' } })), [/server\.dataDir must be an absolute path without a colon/])
})

t.test('the defaults of a plugin are filled in, also inside records', async (t) => {
  const { config } = await resolve({ plugins: { sized: { config: { limits: { a: {}, b: { depth: 1 } } } } } }, { plugins: [sized] })
  t.strictSame(config.plugins, { sized: { enabled: true, onFailure: 'abort', config: { count: 2, mode: 'safe', password: '', limits: { a: { depth: 7 }, b: { depth: 1 } } } } })
})

t.test('every problem is reported at once, with its path, its rule and the nearest known key', async (t) => {
  const value = {
    serverr: {},
    server: { lisen: 'x', dataDir: 'relative', metrics: { enabled: 'yes' }, startTimeout: 'soon', zzzzzzzzzz: 1 },
    log: { level: 'loud' },
    plugins: { sized: { onFailure: 'ignore', config: { count: 0, mode: 'slow', password: 'secret!' } }, sizd: {} }
  }
  t.strictSame([...await problemsOf(resolve(value, { plugins: [sized] }))].sort(), [
    'log.level must be one of "trace", "debug", "info", "warn", "error", "fatal", "silent", not "loud"',
    'plugin sizd cannot be loaded: there is no built-in plugin of this name (did you mean "sized"?), and no "module" says where it is',
    'plugins.sized.config.count must be >= 1, not 0',
    'plugins.sized.config.mode must be one of "fast", "safe", not "slow"',
    'plugins.sized.config.password must not have more than 3 characters',
    'plugins.sized.onFailure must be one of "abort", "continue", not "ignore"',
    'server.dataDir must be an absolute path without a colon, not "relative"',
    'server.lisen is not a known key; did you mean "listen"?',
    'server.metrics.enabled must be true or false, not "yes"',
    'server.startTimeout must be a duration such as 500ms, 30s or 1h30m, of at most 596h, not "soon"',
    'server.zzzzzzzzzz is not a known key',
    'serverr is not a known key; did you mean "server"?'
  ].sort())
})

t.test('a duration that is waited for and that no timer can hold is refused, and one that is compared with a clock may have any length', async (t) => {
  const timed = definePlugin({ manifest: { id: 'timed', provides: [], requires: [], config: Type.Object({ wait: Duration('1m', ''), keep: LongDuration('1000h', '') }, { additionalProperties: false }) } })
  const of = (drainTimeout: string, wait: string, keep: string): Promise<ResolvedConfig> => resolve({ server: { drainTimeout }, plugins: { timed: { config: { wait, keep } } } }, { plugins: [timed] })
  const rule = 'must be a duration such as 500ms, 30s or 1h30m'
  t.strictSame(await problemsOf(of('597h', '25h2147483647ms', `${'9'.repeat(400)}h`)), [
    `server.drainTimeout ${rule}, of at most 596h, not "597h"`,
    `plugins.timed.config.wait ${rule}, of at most 596h, not "25h2147483647ms"`,
    `plugins.timed.config.keep ${rule}, not "${'9'.repeat(59)}…`
  ])
  t.match((await of('596h', '595h59m60s', '100000h')).config, { server: { drainTimeout: '596h' }, plugins: { timed: { config: { wait: '595h59m60s', keep: '100000h' } } } })
})

t.test('a problem in a file is reported with the line at which it stands', async (t) => {
  const file = join(await temporaryFolder(t), 'berth.yaml')
  await writeFile(file, 'server:\n  listen: 127.0.0.1:99999\n\nlog:\n  lvel: info\nplugins:\n  sized:\n    config:\n      count: many\n')
  const source = await sourceOfFile(file)
  t.strictSame([...await problemsOf(resolveConfig(source, { environment: {}, builtIns: noBuiltIns, plugins: [sized] }))].sort(), [
    'berth.yaml:2: server.listen must be host:port, as in 127.0.0.1:8080 or [::1]:8080, with a port from 0 (any free one) to 65535, or none, not "127.0.0.1:99999"',
    'berth.yaml:5: log.lvel is not a known key; did you mean "level"?',
    'berth.yaml:9: plugins.sized.config.count must be an integer, not "many"'
  ])
})

t.test('text that is no YAML, a key written twice, and a file that is no mapping are reported', async (t) => {
  const folder = await temporaryFolder(t)
  const problemsIn = async (text: string): Promise<readonly string[]> => {
    const file = join(folder, 'berth.yaml')
    await writeFile(file, text)
    return problemsOf(resolveConfig(await sourceOfFile(file), { environment: {}, builtIns: noBuiltIns }))
  }
  t.match(await problemsIn('server: {\n  listen: "a\n'), [/^berth\.yaml:\d+: /])
  t.match(await problemsIn('log:\n  level: info\nlog:\n  level: warn\n'), [/^berth\.yaml:3: .*unique/])
  t.strictSame(await problemsIn('- a\n- b\n'), ['the configuration must be a mapping of keys to values'])
})

t.test('each variable of the table takes its place, and wins over the file', async (t) => {
  const values: Environment = {
    BERTH_DATA_DIR: '/data', BERTH_LISTEN: '[::1]:80', BERTH_DATABASE_URL: 'mysql://u:p@h/d', BERTH_API_KEY: '0123456789abcdef', BERTH_LOG_LEVEL: 'warn'
  }
  t.strictSame(Object.keys(values).sort(), ENVIRONMENT_OVERRIDES.map(row => row.name).sort(), 'the test knows the whole table')
  const { config } = await resolve({ server: { dataDir: '/other', listen: '0.0.0.0:1' }, log: { level: 'debug' } }, { environment: values })
  t.match(config, { server: { dataDir: '/data', listen: '[::1]:80', apiKey: '0123456789abcdef' }, database: { url: 'mysql://u:p@h/d' }, log: { level: 'warn' } })
  t.equal((await resolve({ log: { level: 'debug' } }, { environment: { BERTH_LOG_LEVEL: '' } })).config.log.level, 'debug', 'an empty variable is not set')
})

t.test('a value in the environment is checked like one in the file, and secrets are not shown', async (t) => {
  const environment = { BERTH_LISTEN: 'nowhere', BERTH_API_KEY: 'short one', BERTH_DATABASE_URL: 'postgres://u:hidden@h/d', BERTH_LOG_LEVEL: 'LOUD', BERTH_DATA_DIR: 'x' }
  const problems = await problemsOf(resolve({}, { environment }))
  t.strictSame([...problems].sort(), [
    'BERTH_API_KEY must have 16 to 200 printable characters and no space, or be empty for none',
    'BERTH_DATABASE_URL must be sqlite:PATH or mysql://user:password@host:port/name',
    'BERTH_DATA_DIR must be an absolute path without a colon, not "x"',
    'BERTH_LISTEN must be host:port, as in 127.0.0.1:8080 or [::1]:8080, with a port from 0 (any free one) to 65535, or none, not "nowhere"',
    'BERTH_LOG_LEVEL must be one of "trace", "debug", "info", "warn", "error", "fatal", "silent", not "LOUD"'
  ])
})

t.test('a database URL that cannot be opened is refused before anything is touched, and its password is not shown', async (t) => {
  const unreadable = 'database.url cannot be read: in user and password each of # / ? @ : % must be written as a percent sign and two digits, as %23 for #'
  for (const url of ['mysql://u:hid#den@h/d', 'mysql://u:hid%den@h/d', 'mysql://u:hid/den@h/d']) t.strictSame(await problemsOf(resolve({ database: { url } })), [unreadable], url)
  t.strictSame(await problemsOf(resolve({}, { environment: { BERTH_DATABASE_URL: 'mysql://u:hidden@h' } })), ['BERTH_DATABASE_URL lacks the name of the database, as in mysql://user:password@host:port/name'])
  for (const url of ['mysql://u:hid%23den@h/d', 'mariadb://u@h:3307/d?socketPath=%2Frun%2Fx.sock', 'sqlite:100%.db']) t.equal((await resolve({ database: { url } })).config.database.url, url)
})

t.test('problems of the graph come together with those of the values, and name what is turned off', async (t) => {
  const needy: Plugin = { manifest: { ...sized.manifest, id: 'needy', requires: ['server', 'events'], provides: ['log'] } }
  t.strictSame(await problemsOf(resolve({ server: { dataDir: 3 } }, { plugins: [needy] })), [
    'server.dataDir must be an absolute path without a colon, not 3',
    'the key "log" is provided more than once: by core and needy'
  ])
  const folder = await temporaryFolder(t)
  await writeFile(join(folder, 'lonely.js'), manifestText('lonely', 'requires: ["greetings"]'))
  t.strictSame(await problemsOf(resolve({ plugins: { lonely: { module: './lonely.js' }, sized: { enabled: false } } }, { plugins: [sized], folder })), [
    'plugin lonely requires "greetings", which no enabled plugin provides (turned off: sized)'
  ])
})

const manifestText = (id: string, more = ''): string =>
  `export const plugin = { manifest: { id: '${id}', provides: [], requires: [], config: { type: 'object', additionalProperties: false, properties: { size: { type: 'integer', default: 4 } } }, ${more} } }\n`

t.test('a third party is found by path, by folder, and by package name, relative to the configuration', async (t) => {
  const folder = await temporaryFolder(t)
  await mkdir(join(folder, 'deep/node_modules/@acme/berth-four'), { recursive: true })
  await mkdir(join(folder, 'two'))
  await mkdir(join(folder, 'node_modules/berth-three/lib'), { recursive: true })
  await writeFile(join(folder, 'one.js'), manifestText('one'))
  await writeFile(join(folder, 'two/index.js'), manifestText('two'))
  await writeFile(join(folder, 'node_modules/berth-three/package.json'), '{"type":"module","exports":{".":{"import":"./lib/entry.js"}}}')
  await writeFile(join(folder, 'node_modules/berth-three/lib/entry.js'), manifestText('three'))
  await writeFile(join(folder, 'deep/node_modules/@acme/berth-four/package.json'), '{"type":"module","main":"four.js"}')
  await writeFile(join(folder, 'deep/node_modules/@acme/berth-four/four.js'), manifestText('four'))
  const plugins = {
    one: { module: '../one.js', config: { size: 9 } }, two: { module: join(folder, 'two') }, three: { module: 'berth-three' }, four: { module: '@acme/berth-four' }
  }
  const resolved = await resolve({ plugins }, { folder: join(folder, 'deep') })
  t.strictSame(resolved.plugins.map(plugin => plugin.manifest.id), ['four', 'one', 'three', 'two'])
  t.strictSame([resolved.config.plugins['one']?.config, resolved.config.plugins['two']?.config], [{ size: 9 }, { size: 4 }], 'defaults of a plain JSON schema count')
})

t.test('a module that is missing, broken or no plugin is a clear error, each of them', async (t) => {
  const folder = await temporaryFolder(t)
  const modules: Record<string, string> = {
    empty: 'export const other = 1\n',
    thrower: 'throw new Error("at import")\n',
    misnamed: manifestText('other-name'),
    shapeless: 'export const plugin = { manifest: { id: "shapeless", provides: "x", requires: [], config: { type: "object" } }, create: 1, start: 1 }\n'
  }
  for (const [id, text] of Object.entries(modules)) await writeFile(join(folder, `${id}.js`), text)
  const entries = Object.fromEntries([...Object.keys(modules), 'absent'].map(id => [id, { module: `./${id}.js` }]))
  const problems = await problemsOf(resolve({ plugins: { ...entries, unpacked: { module: 'no-such-package' } } }, { folder }))
  t.strictSame([...problems].sort(), [
    `plugin absent cannot be loaded: ${folder}/absent.js does not exist`,
    `plugin empty cannot be loaded: ${folder}/empty.js does not export "plugin"`,
    'plugin misnamed cannot be loaded: it is not a plugin: its id is "other-name", but it is named "misnamed"',
    'plugin shapeless cannot be loaded: it is not a plugin: manifest.provides must be array; manifest.config must have required properties additionalProperties; create is not a function; start stands beside create; what a plugin does is what its create returns',
    'plugin thrower cannot be loaded: at import',
    `plugin unpacked cannot be loaded: the package no-such-package is not installed in ${folder} or above it`
  ])
})

t.test('no plugin takes the id under which core keeps its own tables', async (t) => {
  const own: Plugin = { manifest: { id: 'core', provides: [], requires: [], config: Type.Object({}, { additionalProperties: false }) } }
  t.match(await problemsOf(resolve({}, { plugins: [own] })), [/plugin core cannot be loaded: it is not a plugin: the id core is Berth's own/])
})

t.test('which built-in plugins cannot be turned off alone is as core/README.md says', async (t) => {
  const here = (ids: readonly string[]): string[] => ids.filter((id) => !DELETED.includes(id)).sort()
  const rows = [...(await readFile(join(packageRoot, 'core/README.md'), 'utf8')).matchAll(/^\| `([a-z-]+)` \| (`[a-z-]+`(?:, `[a-z-]+`)*) \|$/gm)]
  const told = rows.map(([, id = '', others = '']): [string, string[]] => [id, here(others.replaceAll('`', '').split(', '))])
  const found: Array<[string, string[]]> = []
  for (const id of (await findBuiltIns(builtInFolder)).keys()) {
    const problems = await resolve({ plugins: { [id]: { enabled: false } } }, { builtIns: builtInFolder }).then(() => [], (error: unknown) => error instanceof ConfigError ? error.problems : [String(error)])
    const others = problems.map((problem) => /^plugin ([a-z-]+) requires /.exec(problem)?.[1] ?? problem)
    if (others.length > 0) found.push([id, [...new Set(others)].sort()])
  }
  t.same(found, told.filter(([id, others]) => !DELETED.includes(id) && others.length > 0))
})

t.test('what each built-in plugin provides, requires and can do without is as its README says', async (t) => {
  const sentence = (keys: readonly string[]): string => keys.length === 0 ? 'nothing' : keys.map((key) => `\`${key}\``).join(', ')
  for (const [id, file] of await findBuiltIns(builtInFolder)) {
    const { manifest: { provides, requires, optional = [] } } = await importPlugin(id, file)
    const told = (await readFile(join(packageRoot, 'plugins', id, 'README.md'), 'utf8')).split('\n').filter((line) => line.startsWith('Provides '))
    const keys = /^Provides [^.]+\. Requires [^.]+\.(?: Optional: [^.]+\.)?/
    t.same(told.map((line) => keys.exec(line)?.[0] ?? line), [`Provides ${sentence(provides)}. Requires ${sentence(requires)}.${optional.length === 0 ? '' : ` Optional: ${sentence(optional)}.`}`], id)
  }
})

t.test('a plugin that is turned off is never imported, and its settings are not checked', async (t) => {
  const folder = await temporaryFolder(t)
  await mkdir(join(folder, 'builtin/landmine'), { recursive: true })
  await writeFile(join(folder, 'builtin/landmine/index.js'), 'throw new Error("imported")\n')
  await writeFile(join(folder, 'bomb.js'), 'throw new Error("imported")\n')
  const builtIns = pathToFileURL(join(folder, 'builtin/'))
  const off = { enabled: false, config: { whatever: 1 } }
  const resolved = await resolve({ plugins: { landmine: off, bomb: { ...off, module: './bomb.js' } } }, { folder, builtIns })
  t.strictSame([resolved.disabled, resolved.plugins], [['bomb', 'landmine'], []])
  t.strictSame(await problemsOf(resolve({}, { folder, builtIns })), ['plugin landmine cannot be loaded: imported'], 'it would have been noticed')
})

t.test('commands that start no plugin look at the core sections only', async (t) => {
  const source = sourceOfValue({ log: { level: 'warn' }, plugins: { nonsense: 3 } }, '/')
  t.equal(resolveCoreConfig(source, {}).log.level, 'warn')
  t.throws(() => resolveCoreConfig(sourceOfValue({ log: { level: 'x' } }, '/'), {}), { name: 'ConfigError' })
})
