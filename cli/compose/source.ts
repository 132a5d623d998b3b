// The text of a Compose file as plain values, with the line of each.
import { buffer } from 'node:stream/consumers'
import { LineCounter, isAlias, isMap, isNode, isPair, isScalar, isSeq, parseDocument, type Document, type Node } from 'yaml'
import { Failure, wrongUsage } from '../failure.ts'
import { contentOf } from '../local-file.ts'

export type Path = readonly (string | number)[]

export interface Source {
  /** the name that the caller used */
  readonly file: string
  /** maps, lists and scalars of JSON */
  readonly value: unknown
  /** The line where the value at a path begins; for an inherited value, the line of the heir. */
  lineOf (path: Path): number
}

const MAX_BYTES = 1024 * 1024
/** how often anchored values may be repeated in total */
const MAX_ALIASES = 100

export async function readSource (file: string): Promise<Source> {
  return parseSource(await textOf(file), file)
}

function parseSource (text: string, file: string): Source {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, merge: true, prettyErrors: false, stringKeys: true })
  const [fault] = document.errors
  if (fault !== undefined) throw wrongUsage(`${file}:${lines.linePos(fault.pos[0]).line}: ${fault.message}`)
  return { file, value: valueOf(document, file), lineOf: (path) => lines.linePos(startOf(document, path)).line }
}

function valueOf (document: Document, file: string): unknown {
  try {
    return document.toJS({ maxAliasCount: MAX_ALIASES })
  } catch (error) {
    throw new Failure(`${file}: ${error instanceof Error ? error.message : String(error)}`)
  }
}

function startOf (document: Document, path: Path): number {
  let node: unknown = document.contents
  let start = offsetOf(node)
  for (const step of path) {
    if (isAlias(node)) node = node.resolve(document)
    if (isSeq(node) && typeof step === 'number') {
      node = node.items[step]
      start = offsetOf(node) ?? start
      continue
    }
    const pair = isMap(node) ? node.items.find(({ key }) => isScalar(key) && key.value === step) : undefined
    if (!isPair(pair)) break
    start = offsetOf(pair.key) ?? start
    node = pair.value
  }
  return start ?? 0
}

function offsetOf (node: unknown): number | undefined {
  return isNode(node) ? (node as Node).range?.[0] : undefined
}

async function textOf (file: string): Promise<string> {
  const bytes = await buffer(await contentOf(file, MAX_BYTES + 1))
  if (bytes.length > MAX_BYTES) throw new Failure(`${file} has more than ${MAX_BYTES} bytes`)
  return bytes.toString('utf8')
}
