// Makes the two programs of the proxy, dist/proxy/main.js and dist/proxy/worker.js, each one file with all that it imports: `node setup/bundled-proxy.js`.
// A proxy is four processes on a small host, and nothing leaves the VMs until they are loaded: README.md has the times.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const packageRoot = fileURLToPath(new URL('../', import.meta.url))
const PROGRAMS = { 'main.js': 'parent/main.ts', 'worker.js': 'workers/main.ts' }

if (existsSync(join(packageRoot, 'proxy'))) {
  await Promise.all(Object.entries(PROGRAMS).map(async ([file, entry]) => await build({
    absWorkingDir: packageRoot,
    // The source, since compiled code finds packages in bundles of their own: see bundled-packages.js.
    entryPoints: [join('proxy', entry)],
    outfile: join('dist/proxy', file),
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    sourcemap: true,
    keepNames: true,
    logLevel: 'warning',
    // Some packages are CommonJS.
    banner: { js: "import { createRequire as requireOf } from 'node:module'\nconst require = requireOf(import.meta.url)" }
  })))
}
