// The versions of this program and of the Node.js that it needs, as package.json states them, and of its API.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from './package-root.ts'

function readPackage (): { readonly version: string, readonly leastNode: string } {
  const content: unknown = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8'))
  if (typeof content !== 'object' || content === null || !('version' in content) || typeof content.version !== 'string') throw new Error('package.json states no version')
  const engines = 'engines' in content ? content.engines : undefined
  const node = typeof engines === 'object' && engines !== null && 'node' in engines ? engines.node : undefined
  const leastNode = typeof node === 'string' ? /^>=(\d+\.\d+(?:\.\d+)?)$/.exec(node)?.[1] : undefined
  if (leastNode === undefined) throw new Error('package.json states no least version of Node.js')
  return { version: content.version, leastNode }
}

const stated = readPackage()

/**
 * The API's version, which the document and GET /capabilities state: the first number grows when a client may break, the second when something is added. It is independent
 * of the program's version.
 */
export const API_VERSION = '1.0.0'

/** Of the form 1.2.3. */
export const version: string = stated.version

/** The oldest Node.js that it runs on: of the form 1.2 or 1.2.3. */
export const leastNode: string = stated.leastNode
