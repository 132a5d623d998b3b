// Reads one setting of the operator's berth.yaml as it is written there: without defaults, checks and overrides.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'yaml'
import { isThere } from '../../core/fs/is-there.ts'
import { SERVER_CONFIG } from './places.ts'

/** `undefined` where there is no such key, or no file. @throws when it is no YAML */
export async function writtenSetting (root: string, ...keys: readonly string[]): Promise<unknown> {
  const path = join(root, SERVER_CONFIG)
  return await isThere(path) ? keys.reduce(member, parse(await readFile(path, 'utf8')) as unknown) : undefined
}

function member (value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined
}
