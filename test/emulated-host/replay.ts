// What a file of tests printed elsewhere, as results of a test here: each block is a block again, each assertion an assertion.
import type { Test } from 'tap'
import { Parser, type Result } from 'tap-parser'

export interface Block {
  readonly name: string
  readonly items: Array<Block | Result>
}

/** A block without blocks in it. */
export interface Case {
  readonly path: readonly string[]
  readonly outcome: 'passed' | 'failed' | 'skipped'
  /** why it was skipped */
  readonly reason?: string
}

/** The cases of a tree in their order. */
export function casesOf (block: Block, path: readonly string[] = []): readonly Case[] {
  const inner = block.items.flatMap((item) => 'items' in item ? casesOf(item, [...path, item.name]) : [])
  const own = block.items.flatMap((item) => 'items' in item ? [] : item)
  const skipped = own.filter(({ skip }) => skip !== false).map(({ name, skip }): Case => ({ path: [...path, name], outcome: 'skipped', ...typeof skip === 'string' ? { reason: skip } : {} }))
  const isFailed = own.some(({ ok }) => !ok)
  if (inner.length === 0 && skipped.length === 0) return [{ path, outcome: isFailed || own.length === 0 ? 'failed' : 'passed' }]
  return [...inner, ...skipped, ...isFailed ? [{ path, outcome: 'failed' as const }] : []]
}

/** Text that ends in the middle counts as far as it goes; that it ended there is the caller's to say. */
export async function replay (t: Test, tap: string): Promise<void> {
  await repeat(t, readResults(tap))
}

/** The results as a tree, whose top has no name. */
export function readResults (tap: string): Block {
  const parser = new Parser()
  const top: Block = { name: '', items: [] }
  follow(parser, top)
  parser.end(tap)
  return top
}

function follow (parser: Parser, block: Block): void {
  // The line after a block says how that ended, which its own results say as well.
  let open: Parser | undefined
  parser.on('child', (child: Parser) => {
    open = child
    const inner: Block = { name: child.name, items: [] }
    block.items.push(inner)
    follow(child, inner)
  })
  parser.on('assert', (result: Result) => {
    const isEndOfBlock = open !== undefined
    open = undefined
    if (isEndOfBlock && (result.ok || !isEmpty(block.items.at(-1)))) return
    block.items.push(result)
  })
}

function isEmpty (item: Block | Result | undefined): boolean {
  return item !== undefined && 'items' in item && item.items.length === 0
}

async function repeat (t: Test, { items }: Block): Promise<void> {
  for (const item of items) {
    if ('items' in item) await repeatBlock(t, item)
    else assertAgain(t, item)
  }
}

async function repeatBlock (t: Test, block: Block): Promise<void> {
  await t.test(block.name, async (t) => { await repeat(t, block) })
}

function assertAgain (t: Test, { ok, name, skip, diag }: Result): void {
  if (skip !== false) t.pass(name, { skip: String(skip) })
  else if (ok) t.pass(name)
  else t.fail(name, { diagnostic: true, there: diag })
}
