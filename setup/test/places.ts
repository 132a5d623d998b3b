// Test files run without Node's own source maps, which read the map of each file and package that is loaded: a fifth of a second of processor time for each test file. Failures
// are still reported with places in the sources: they are looked up when the report is printed.
import { readFileSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { dirname, join, relative, resolve } from 'node:path'
import { packageRoot } from '../../core/package-root.ts'

/** in a stack, and where tap notes the place of an assertion */
const IN_STACK = /(?<![\w@./-])(?:file:\/\/)?([\w@./-]{1,300}\.js):(\d+):(\d+)/g
const IN_NOTE = /"fileName":"([\w@./-]{1,300}\.js)","lineNumber":(\d+),"columnNumber":(\d+)/g

/** The text with places in compiled files as places in their sources, relative to the package. */
export function withSourcePlaces (text: string): string {
  const maps = new Map<string, SourceMap | undefined>()
  return text
    .replace(IN_STACK, (whole, file: string, line: string, column: string) => placeOf(maps, file, Number(line), Number(column))?.join(':') ?? whole)
    .replace(IN_NOTE, (whole, file: string, line: string, column: string) => {
      const [source, sourceLine, sourceColumn] = placeOf(maps, file, Number(line), Number(column)) ?? []
      return source === undefined ? whole : `"fileName":"${source}","lineNumber":${sourceLine},"columnNumber":${sourceColumn}`
    })
}

function placeOf (maps: Map<string, SourceMap | undefined>, file: string, line: number, column: number): [source: string, line: number, column: number] | undefined {
  const path = resolve(packageRoot, file)
  if (!maps.has(path)) maps.set(path, mapOf(path))
  const entry = maps.get(path)?.findEntry(line - 1, column - 1)
  if (entry === undefined || !('originalSource' in entry)) return undefined
  return [relative(packageRoot, join(dirname(path), entry.originalSource)), entry.originalLine + 1, entry.originalColumn + 1]
}

/** Undefined for a file without a map, or one that was not compiled here. */
function mapOf (path: string): SourceMap | undefined {
  if (path.includes('/node_modules/')) return undefined
  try {
    return new SourceMap(JSON.parse(readFileSync(`${path}.map`, 'utf8')))
  } catch {
    return undefined
  }
}
