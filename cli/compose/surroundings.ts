// The surroundings of a Compose file: its folder, whose `.env` may define variables, and the environment of this process, which overrides them.
import { dirname, join, resolve } from 'node:path'
import { readEnvFile } from './env-file.ts'
import type { Variables } from './interpolate.ts'

export interface Surroundings {
  readonly folder: string
  readonly variables: Variables
}

/** @param warn called once for each variable that is not set */
export async function surroundingsOf (file: string, environment: NodeJS.ProcessEnv, warn: (text: string) => void): Promise<Surroundings> {
  const folder = dirname(resolve(file))
  const told = new Set<string>()
  const missing = (name: string): void => {
    if (!told.has(name)) warn(`the variable ${name} is not set; it counts as empty`)
    told.add(name)
  }
  const fromFile = await readEnvFile(join(folder, '.env'), { get: (name) => environment[name], missing })
  return { folder, variables: { get: (name) => environment[name] ?? fromFile?.get(name), missing } }
}
