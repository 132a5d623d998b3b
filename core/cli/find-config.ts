// Finds the configuration: --config, then $BERTH_CONFIG, then /etc/berth/berth.yaml, then the built-in defaults.
import { existsSync } from 'node:fs'
import { CONFIG_VARIABLE, type Environment } from '../config/environment.ts'
import { ConfigError } from '../config/resolve.ts'
import { sourceOfFile, sourceOfValue, type ConfigSource } from '../config/source.ts'

const SYSTEM_FILE = '/etc/berth/berth.yaml'

export interface FoundConfig {
  readonly source: ConfigSource
  /** for people: a path, or `built-in defaults` */
  readonly origin: string
  /** absent: no file was read */
  readonly file?: string
}

/** A file that the operator named must exist; only the system's own may be absent. */
export async function findConfig (option: string | undefined, environment: Environment): Promise<FoundConfig> {
  const variable = environment[CONFIG_VARIABLE]
  const named = option ?? (variable === '' ? undefined : variable)
  const file = named ?? (existsSync(SYSTEM_FILE) ? SYSTEM_FILE : undefined)
  if (file === undefined) return { source: sourceOfValue({}, process.cwd()), origin: 'built-in defaults' }
  try {
    return { source: await sourceOfFile(file), origin: file, file }
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error
    throw new ConfigError([`${file} cannot be read: ${error.message}`])
  }
}
