// Reads a written configuration, and remembers the line of each value.
import { readFile } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import { isMap, isNode, isScalar, LineCounter, parseDocument, type Document } from 'yaml'

export interface Place { readonly file: string, readonly line: number }

export interface ConfigSource {
  /** as written: not checked, and without defaults */
  readonly value: unknown
  /** folder from which relative paths in it are resolved */
  readonly folder: string
  /** the place where a key is written; `undefined` for a source that is not a file */
  locate (path: readonly string[]): Place | undefined
  /** why the text cannot be read as YAML */
  readonly problems: readonly string[]
}

/** A configuration that was built in memory. */
export function sourceOfValue (value: unknown, folder: string): ConfigSource {
  return { value, folder, locate: () => undefined, problems: [] }
}

/** Reads a YAML file. Rejects when it cannot be read; what is wrong inside is in `problems`. */
export async function sourceOfFile (file: string): Promise<ConfigSource> {
  const lines = new LineCounter()
  const document = parseDocument(await readFile(file, 'utf8'), { lineCounter: lines, prettyErrors: false })
  const name = basename(file)
  const at = (offset: number): Place => ({ file: name, line: lines.linePos(offset).line })
  const problems = document.errors.map(error => `${name}:${at(error.pos[0]).line}: ${error.message}`)
  return {
    value: problems.length === 0 ? document.toJS() : {},
    folder: dirname(resolve(file)),
    problems,
    locate: path => at(offsetOf(document, path))
  }
}

/** Offset of the deepest written part of `path`, so that a missing key is reported at its section. */
function offsetOf (document: Document, path: readonly string[]): number {
  let node: unknown = document.contents
  let offset = 0
  for (const part of path) {
    if (!isMap(node)) {
      const item: unknown = document.getIn(path.slice(0, path.indexOf(part) + 1), true)
      return isNode(item) ? item.range?.[0] ?? offset : offset
    }
    const pair = node.items.find(item => isScalar(item.key) && String(item.key.value) === part)
    if (pair === undefined) return offset
    if (isNode(pair.key)) offset = pair.key.range?.[0] ?? offset
    node = pair.value
  }
  return offset
}
