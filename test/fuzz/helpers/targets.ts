// What can be fuzzed: each file beside the test, or in a folder that bears a plugin's name.
import { existsSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { findBuiltIns, builtInFolder } from '../../../core/plugins/discover.ts'

const FOLDER = new URL('../', import.meta.url)

/** Files of targets, by their names. */
export async function findTargets (): Promise<ReadonlyMap<string, URL>> {
  const plugins = [...(await findBuiltIns(builtInFolder)).keys()].map((id) => new URL(`${id}/`, FOLDER)).filter((folder) => existsSync(fileURLToPath(folder)))
  return new Map([FOLDER, ...plugins].flatMap((folder) => readdirSync(folder)
    .filter((name) => name.endsWith('.js') && !name.endsWith('.test.js') && name !== 'fuzz.js')
    .map((name): [string, URL] => [name.slice(0, -3), new URL(name, folder)])).sort(([a], [b]) => a < b ? -1 : 1))
}
