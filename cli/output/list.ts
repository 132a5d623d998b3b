// Prints lists: with -q one name or id a line, else a table, or the objects as they are.
import { clean } from '../../core/clean-text.ts'
import type { Session } from '../session.ts'

export interface Columns<T> {
  /** what -q prints */
  readonly key: (item: T) => string
  readonly columns: readonly (readonly [heading: string, cell: (item: T) => string])[]
}

export async function printList<T> (session: Session, items: readonly T[], { key, columns }: Columns<T>): Promise<number> {
  if (session.quiet) for (const item of items) session.line(clean(key(item)))
  else await session.print(items, { headings: columns.map(([heading]) => heading), rows: items.map((item) => columns.map(([, cell]) => cell(item))) })
  return 0
}
