// Bundles packages of very many small modules into few files below dist, where compiled code finds them before those in node_modules: `node setup/bundled-packages.js`.
// To load these 1,100 modules one by one takes a server, an isolated part or a test two thirds of a second of processor time, and the 330 of tap a test 0.15 s. Without the
// bundles the same code runs, from the packages themselves.
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const packageRoot = fileURLToPath(new URL('../', import.meta.url))
const require = createRequire(import.meta.url)
const common = { absWorkingDir: packageRoot, bundle: true, platform: 'node', target: 'node20', logLevel: 'warning' }

/** What the server loads at every start. Of the packages of CommonJS, with the paths inside them that are imported by themselves. */
const COMMON_JS = [
  '@fastify/ajv-compiler', '@fastify/awilix', '@fastify/cors', '@fastify/etag', '@fastify/fast-json-stringify-compiler', '@fastify/rate-limit', '@fastify/swagger', '@fastify/websocket', '@opentelemetry/api',
  'awilix', 'fastify', 'fastify-plugin', 'form-data', 'knex', 'knex/lib/dialects/better-sqlite3/index.js', 'prom-client', 'qs', 'ws', 'yaml'
]
/** Packages that these load, and that load files of their own: worker threads, native modules and what is not installed. */
const LEFT_OUT = ['better-sqlite3', 'bufferutil', 'cloudflare:sockets', 'mariadb', 'mysql', 'mysql2', 'oracledb', 'pg', 'pg-native', 'pg-query-stream', 'pino', 'sqlite3', 'tedious', 'utf-8-validate']
/** the folder of the bundle beside the packages that it stands for */
const BUNDLE = '.bundle'

const modules = join(packageRoot, 'dist/node_modules')
await rm(modules, { recursive: true, force: true })
await bundlePackages(modules)
if (existsSync(join(packageRoot, 'node_modules/tap'))) await bundleTap(join(packageRoot, 'dist/test/node_modules'))

/** All in one file, so that there is one copy of what several need. Each package's own folder hands out its part. */
async function bundlePackages (modules) {
  const typebox = await typeboxEntries()
  const entries = [...COMMON_JS, ...typebox]
  const folder = join(modules, BUNDLE)
  await mkdir(folder, { recursive: true })
  await build({
    ...common,
    format: 'cjs',
    stdin: { contents: entries.map((entry) => `exports[${JSON.stringify(entry)}] = () => require(${JSON.stringify(entry)})`).join('\n'), resolveDir: packageRoot },
    outfile: join(folder, 'packages.cjs'),
    external: LEFT_OUT.flatMap((name) => [name, `${name}/*`]),
    minifyWhitespace: true
  })
  await copyFile(join(packageRoot, 'setup/bundled-packages.cjs'), join(folder, 'load.cjs'))
  await Promise.all([
    ...packagesOf(COMMON_JS).map(async ([name, paths]) => await handOut(modules, { name, paths, source: commonJsPart, ext: '.cjs' })),
    handOut(modules, { name: 'typebox', paths: typebox, source: modulePart, ext: '.js' })
  ])
  execFileSync(process.execPath, [join(folder, 'load.cjs')], { stdio: ['ignore', 'inherit', 'inherit'] })
}

async function typeboxEntries () {
  const { exports } = JSON.parse(await readFile(join(packageRoot, 'node_modules/typebox/package.json'), 'utf8'))
  return Object.keys(exports).map((path) => join('typebox', path))
}

/** The packages' names, each with what is imported of it. */
function packagesOf (entries) {
  const found = new Map()
  for (const entry of entries) {
    const name = entry.split('/').slice(0, entry.startsWith('@') ? 2 : 1).join('/')
    found.set(name, [...found.get(name) ?? [], entry])
  }
  return [...found]
}

async function handOut (modules, { name, paths, source, ext }) {
  const target = join(modules, name)
  const { version } = JSON.parse(await readFile(join(packageRoot, 'node_modules', name, 'package.json'), 'utf8'))
  const exports = {}
  for (const path of paths) {
    const inner = path.slice(name.length + 1)
    const file = inner === '' ? `index${ext}` : inner.endsWith('.js') ? inner : `${inner}${ext}`
    exports[inner === '' ? '.' : `./${inner}`] = `./${file}`
    await mkdir(dirname(join(target, file)), { recursive: true })
    await writeFile(join(target, file), source(path, await namesOf(path), loaderFrom(path, file)))
  }
  await writeFile(join(target, 'package.json'), JSON.stringify({ name, version, exports, ...ext === '.js' ? { type: 'module' } : {} }))
}

/** The path of the loader from a file in the folder of a package. */
function loaderFrom (path, file) {
  const depth = (path.startsWith('@') ? 2 : 1) + file.split('/').length - 1
  return `${'../'.repeat(depth)}${BUNDLE}/load.cjs`
}

/** What can be imported of a package by its name. */
async function namesOf (path) {
  const names = Object.keys(await import(path)).filter((name) => name !== 'default' && name !== 'module.exports')
  const missing = path.startsWith('typebox') ? undefined : names.find((name) => !(name in require(path)))
  if (missing !== undefined) throw new Error(`${path} exports ${missing} to modules, but not to CommonJS, of which the bundle is made`)
  return names
}

/** For `require` and for `import`, which finds the names in the statement that is never executed. */
function commonJsPart (path, names, loader) {
  return `module.exports = require('${loader}').part('${path}')\n0 && (module.exports = { ${names.join(', ')} })\n`
}

function modulePart (path, names, loader) {
  return `import loader from '${loader}'\nconst part = loader.part('${path}')\nexport const { ${names.join(', ')} } = part\nexport default part.default\n`
}

/** Its code stands where tap leaves the frames of stacks out: below a package that is a part of it. */
async function bundleTap (modules) {
  const code = await emptyFolder(modules, '@tapjs/core')
  const target = await emptyFolder(modules, 'tap')
  await build({
    ...common,
    format: 'esm',
    entryPoints: [join(packageRoot, 'node_modules/tap/dist/esm/index.js')],
    outfile: join(code, 'tap.js'),
    // The rest of the bundle is the package as it is.
    alias: { 'async-hook-domain': join(packageRoot, 'setup/test/error-domain.ts') },
    // Some of its packages are CommonJS.
    banner: { js: "import { createRequire as requireOf } from 'node:module'\nconst require = requireOf(import.meta.url)" }
  })
  await writeFile(join(code, 'package.json'), JSON.stringify({ name: '@tapjs/core', type: 'module' }))
  await writeFile(join(target, 'index.js'), "export { default } from '../@tapjs/core/tap.js'\nexport * from '../@tapjs/core/tap.js'\n")
  await writeFile(join(target, 'package.json'), JSON.stringify({ name: 'tap', type: 'module', exports: './index.js' }))
}

async function emptyFolder (modules, name) {
  const folder = join(modules, name)
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  return folder
}
