// Bundles the pages of the console from plugins/console/web into dist: `node setup/console/pages.js`. It is quick, since esbuild checks no types.
// File names contain a hash of the content, so that browsers can keep the files for good. Without the plugin's folder there is nothing to do.
import { existsSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const packageRoot = fileURLToPath(new URL('../../', import.meta.url))
const source = join(packageRoot, 'plugins/console/web')
const target = join(packageRoot, 'dist/plugins/console/web')

if (existsSync(source)) {
  await rm(target, { recursive: true, force: true })
  await mkdir(target, { recursive: true })
  const { metafile } = await build({
    absWorkingDir: packageRoot,
    entryPoints: [join(source, 'main.tsx')],
    outdir: target,
    bundle: true,
    splitting: true,
    format: 'esm',
    target: 'es2022',
    minify: true,
    legalComments: 'none',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    assetNames: '[name]-[hash]',
    metafile: true,
    logLevel: 'warning'
  })
  await writeFile(join(target, 'index.html'), page(metafile))
}

/** The files that start the page; these load the rest. */
function page ({ outputs }) {
  const [script, { cssBundle }] = Object.entries(outputs).find(([, { entryPoint }]) => entryPoint?.endsWith('main.tsx')) ?? ['', {}]
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Berth</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/console/${basename(cssBundle ?? '')}">
<script type="module" src="/console/${basename(script)}"></script>
</head>
<body><noscript>The console needs JavaScript. The command berth does all that it does.</noscript></body>
</html>
`
}
