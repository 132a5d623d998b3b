// `npm run structure [-- FOLDER]`: counts what the architecture promises, for this checkout or another one, so that two can be compared.
// `npm run structure -- --without PLUGIN|each`: what is removed with the folder of a plugin, and whether the rest compiles.
import { dirname } from 'node:path'
import { parseArgs } from 'node:util'
import { packageRoot } from '../../core/package-root.ts'
import { circlesOf } from './circles.ts'
import { REMOVABLE } from './deleted.ts'
import { readSources, type Source } from './imports.ts'
import { without } from './without.ts'

const PRODUCT = ['core', 'plugins', 'proxy', 'cli'] as const
/** what an instance holds besides its own files: a file of instances that names two of them knows the list */
const PARTS = ['address', 'room', 'volumes', 'devices', 'policy'] as const
const PART_FILES: Readonly<Record<string, typeof PARTS[number]>> = {
  'plugins/instances/network.ts': 'address',
  'plugins/instances/resources.ts': 'room',
  'plugins/instances/volumes/claims.ts': 'volumes',
  'plugins/instances/devices.ts': 'devices',
  'plugins/instances/egress.ts': 'policy'
}
const LARGEST = 10

function placeOf (file: string): string {
  return file.split('/').slice(0, 2).join('/').replace(/\.ts$/, '')
}

function pluginOf (file: string): string | undefined {
  const [area, plugin] = file.split('/')
  return area === 'plugins' ? plugin : undefined
}

/** The parts that a file names: by the files that held them at first, or as `parts/<name>.ts`. */
function partsIn (source: Source): ReadonlySet<string> {
  return new Set(source.imports.flatMap(({ to }) => {
    const part = PART_FILES[to] ?? PARTS.find((name) => to === `plugins/instances/parts/${name}.ts`)
    return part === undefined ? [] : [part]
  }))
}

function print (title: string, rows: ReadonlyArray<readonly [string, string | number]>): void {
  console.log(`\n${title}`)
  const width = Math.max(0, ...rows.map(([name]) => name.length))
  for (const [name, value] of rows) console.log(`  ${name.padEnd(width)}  ${value}`)
}

async function count (root: string): Promise<void> {
  const sources = await readSources(root, PRODUCT)
  const imports = sources.flatMap((source) => source.imports)

  const folders = new Map<string, Source[]>()
  for (const source of sources) folders.set(placeOf(source.file), [...folders.get(placeOf(source.file)) ?? [], source])
  print('files and lines', [...folders].map(([folder, of]) => [folder, `${of.length} files, ${of.reduce((sum, { lines }) => sum + lines, 0)} lines`]))

  const lengths = sources.map(({ lines }) => lines).sort((a, b) => a - b)
  print('files', [['count', sources.length], ['median lines', lengths[Math.floor(lengths.length / 2)] ?? 0]])
  print('largest files', [...sources].sort((a, b) => b.lines - a.lines).slice(0, LARGEST).map(({ file, lines }) => [file, lines]))

  const crossing = imports.filter(({ from, to }) => pluginOf(from) !== undefined && pluginOf(to) !== undefined && pluginOf(from) !== pluginOf(to))
  print('imports between plugins', [['all', crossing.length], ['not types', crossing.filter(({ typeOnly }) => !typeOnly).length]])

  const circles = circlesOf(imports)
  print('circles of imports', [['of values', circlesOf(imports.filter(({ typeOnly }) => !typeOnly)).length], ['with types', circles.length]])
  for (const circle of circles) console.log(`    ${circle.join('  ')}`)

  const naming = sources.map((source) => ({ file: source.file, parts: partsIn(source) })).filter(({ file, parts }) => parts.size > 1 && dirname(file).startsWith('plugins/instances'))
  print('places that name several parts of an instance', [['count', naming.length], ...naming.map(({ file, parts }) => [file, [...parts].join(' ')] as const)])
}

/** Reports for each of these plugins what is left of this checkout without it. False when some of that does not compile. */
async function tryWithout (plugins: readonly string[]): Promise<boolean> {
  let compiles = true
  for (const plugin of plugins) {
    const { dependents, gone, compile, close } = await without(packageRoot, plugin)
    const problems = await compile().finally(close)
    print(`without plugins/${plugin}`, [['go with it', [`${gone} files`, ...dependents].join(', plugin ')], ['does not compile', problems.length]])
    for (const problem of problems) console.log(`    ${problem}`)
    compiles &&= problems.length === 0
  }
  return compiles
}

const { values: { without: names = [] }, positionals: [root = packageRoot] } = parseArgs({ options: { without: { type: 'string', multiple: true } }, allowPositionals: true })
if (names.length === 0) await count(root)
else if (!await tryWithout(names.includes('each') ? REMOVABLE : names)) process.exitCode = 1
