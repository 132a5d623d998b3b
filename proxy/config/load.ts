// Reads the configuration file, JSON or YAML, fills in the defaults and refuses unknown keys.
import { readFile } from 'node:fs/promises'
import { Value } from 'typebox/value'
import { parse } from 'yaml'
import { rangeList } from '../contract/ranges.ts'
import { ProxyConfig } from './schema.ts'

/** What is wrong with a configuration, for the person who wrote it. */
export class ConfigFault extends Error {
  override readonly name = 'ConfigFault'
}

/** Reads and checks a file. */
export async function loadConfig (path: string): Promise<ProxyConfig> {
  return checkConfig(parseText(await readFile(path, 'utf8'), path))
}

/** Checks a configuration that was read and fills in its defaults. */
export function checkConfig (written: unknown): ProxyConfig {
  const value = Value.Default(ProxyConfig, structuredClone(written))
  if (!Value.Check(ProxyConfig, value)) {
    const sentences = Value.Errors(ProxyConfig, value).map(({ instancePath, message }) => `${instancePath.slice(1).replaceAll('/', '.') || 'the configuration'} ${message}`)
    throw new ConfigFault(`the configuration cannot be used: ${sentences.join('; ')}`)
  }
  checkRanges('allowPrivate', value.allowPrivate)
  checkRanges('deny', value.deny)
  checkRanges('dns.syntheticRange', [value.dns.syntheticRange])
  return value
}

function parseText (text: string, path: string): unknown {
  try {
    return parse(text)
  } catch (error) {
    throw new ConfigFault(`${path} is neither JSON nor YAML`, { cause: error })
  }
}

function checkRanges (key: string, ranges: readonly string[]): void {
  try {
    rangeList(ranges)
  } catch (error) {
    throw new ConfigFault(`${key}: ${error instanceof Error ? error.message : String(error)}`)
  }
}
