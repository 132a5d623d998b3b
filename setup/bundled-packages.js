// Bundles packages of very many small modules into few files below dist, where compiled code finds them before those in node_modules: `node setup/bundled-packages.js`.
// To load the 680 modules of typebox takes a server, an isolated part or a test a third of a second of processor time, and the 330 of tap a test 0.15 s. Without the bundles the
// same code runs, from the packages themselves.
import { existsSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const packageRoot = fileURLToPath(new URL('../', import.meta.url))
const common = { absWorkingDir: packageRoot, bundle: true, format: 'esm', platform: 'node', target: 'node20', logLevel: 'warning' }

await bundleTypebox(join(packageRoot, 'dist/node_modules'))
if (existsSync(join(packageRoot, 'node_modules/tap'))) await bundleTap(join(packageRoot, 'dist/test/node_modules'))

/** With all entries of the package. What several share is in files of its own, so that there is one copy of its state. */
async function bundleTypebox (modules) {
  const source = join(packageRoot, 'node_modules/typebox')
  const target = await emptyFolder(modules, 'typebox')
  const { version, exports } = JSON.parse(await readFile(join(source, 'package.json'), 'utf8'))
  const entries = Object.entries(exports).map(([path, { import: file }]) => ({ path, in: join(source, file), out: path === '.' ? 'index' : path.slice(2) }))
  await build({ ...common, entryPoints: entries.map(({ in: file, out }) => ({ in: file, out })), outdir: target, splitting: true })
  await describe(target, { name: 'typebox', version, exports: Object.fromEntries(entries.map(({ path, out }) => [path, `./${out}.js`])) })
}

/** Its code stands where tap leaves the frames of stacks out: below a package that is a part of it. */
async function bundleTap (modules) {
  const code = await emptyFolder(modules, '@tapjs/core')
  const target = await emptyFolder(modules, 'tap')
  await build({
    ...common,
    entryPoints: [join(packageRoot, 'node_modules/tap/dist/esm/index.js')],
    outfile: join(code, 'tap.js'),
    // The rest of the bundle is the package as it is.
    alias: { 'async-hook-domain': join(packageRoot, 'setup/test/error-domain.ts') },
    // Some of its packages are CommonJS.
    banner: { js: "import { createRequire as requireOf } from 'node:module'\nconst require = requireOf(import.meta.url)" }
  })
  await describe(code, { name: '@tapjs/core' })
  await writeFile(join(target, 'index.js'), "export { default } from '../@tapjs/core/tap.js'\nexport * from '../@tapjs/core/tap.js'\n")
  await describe(target, { name: 'tap', exports: './index.js' })
}

async function emptyFolder (modules, name) {
  const folder = join(modules, name)
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  return folder
}

async function describe (folder, facts) {
  await writeFile(join(folder, 'package.json'), JSON.stringify({ ...facts, type: 'module' }))
}
