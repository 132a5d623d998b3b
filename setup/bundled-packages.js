// Bundles packages of very many small modules into few files in dist/node_modules, where compiled code finds them before those in node_modules: `node setup/bundled-packages.js`.
// typebox has 680 modules, whose loading is a third of a second of processor time of each server, isolated part and test. Without the bundle the same code runs, from the package itself.
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const packageRoot = fileURLToPath(new URL('../', import.meta.url))

for (const name of ['typebox']) {
  const source = join(packageRoot, 'node_modules', name)
  const target = join(packageRoot, 'dist/node_modules', name)
  const { version, exports } = JSON.parse(await readFile(join(source, 'package.json'), 'utf8'))
  const entries = Object.entries(exports).map(([path, { import: file }]) => ({ path, in: join(source, file), out: path === '.' ? 'index' : path.slice(2) }))
  await rm(target, { recursive: true, force: true })
  await mkdir(target, { recursive: true })
  // What several entries share is in files of its own, so that there is one copy of its state.
  await build({ absWorkingDir: packageRoot, entryPoints: entries.map(({ in: file, out }) => ({ in: file, out })), outdir: target, bundle: true, splitting: true, format: 'esm', platform: 'node', target: 'node20', logLevel: 'warning' })
  await writeFile(join(target, 'package.json'), JSON.stringify({ name, version, type: 'module', exports: Object.fromEntries(entries.map(({ path, out }) => [path, `./${out}.js`])) }))
}
