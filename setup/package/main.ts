// `npm pack` makes the package of the client: while npm reads package.json, that file holds the client's manifest, with its dependencies in the package.
// `main.js begin` is the script prepack, `main.js end` postpack. After a pack that was killed in between, the next one, or `main.js end`, restores the file.
import { existsSync } from 'node:fs'
import { link, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { packageRoot } from '../../core/package-root.ts'
import { clientManifest } from './manifest.ts'

const file = join(packageRoot, 'package.json')
const making = join(packageRoot, 'dist/package.json.client')
/** package.json itself, with its time, from which others tell whether a build is up to date */
const whole = join(packageRoot, 'dist/package.json.whole')
/** the file that a build makes last, see package.json */
const LAST_BUILT = join(packageRoot, 'dist/cli/manual/berth.1')

async function restore (): Promise<void> {
  if (existsSync(whole)) await rename(whole, file)
}

async function begin (): Promise<void> {
  await restore()
  if (!existsSync(LAST_BUILT)) throw new Error('there is no build to pack: `npm run setup` makes one')
  await writeFile(making, `${JSON.stringify(await clientManifest(packageRoot, JSON.parse(await readFile(file, 'utf8'))), undefined, 2)}\n`)
  await link(file, whole)
  await rename(making, file)
}

const steps: Readonly<Record<string, () => Promise<void>>> = { begin, end: restore }
const step = steps[process.argv[2] ?? '']
if (step === undefined) throw new Error('main.js begin | end')
await step()
