// The versions of this program, as package.json states it, and of its API.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from './package-root.ts'

function readVersion (): string {
  const content: unknown = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8'))
  if (typeof content !== 'object' || content === null || !('version' in content) || typeof content.version !== 'string') throw new Error('package.json states no version')
  return content.version
}

/**
 * The API's version, which the document and GET /capabilities state: the first number grows when a client may break, the second when something is added. It is independent
 * of the program's version.
 */
export const API_VERSION = '1.0.0'

/** Of the form 1.2.3. */
export const version: string = readVersion()
