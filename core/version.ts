// The version of this program, as package.json states it.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from './package-root.ts'

function readVersion (): string {
  const content: unknown = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8'))
  if (typeof content !== 'object' || content === null || !('version' in content) || typeof content.version !== 'string') throw new Error('package.json states no version')
  return content.version
}

/** Of the form 1.2.3. */
export const version: string = readVersion()
