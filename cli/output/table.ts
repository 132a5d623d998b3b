// Rows in columns that fit the terminal.
import stringWidth from 'string-width'
import { clean } from './clean.ts'

const GAP = 3
/** no column is cut to less than this */
const LEAST = 8

/** One line for each row, without trailing blanks; the widest columns are cut when `width` (in cells) is given and too small. */
export function table (headings: readonly string[], rows: readonly (readonly string[])[], width?: number): string[] {
  const cells = [headings, ...rows.map((row) => row.map(clean))]
  const widths = headings.map((_, column) => Math.max(...cells.map((row) => stringWidth(row[column] ?? ''))))
  if (width !== undefined) shrink(widths, width)
  return cells.map((row) => row.map((cell, column) => fitted(cell, widths[column] ?? 0)).join(' '.repeat(GAP)).trimEnd())
}

function shrink (widths: number[], width: number): void {
  const total = (): number => widths.reduce((sum, each) => sum + each, GAP * (widths.length - 1))
  while (total() > width) {
    const widest = widths.indexOf(Math.max(...widths))
    const now = widths[widest] ?? 0
    if (now <= LEAST) return
    widths[widest] = Math.max(LEAST, now - (total() - width), Math.max(...widths.filter((_, index) => index !== widest), LEAST) - 1)
  }
}

function fitted (cell: string, width: number): string {
  const own = stringWidth(cell)
  if (own <= width) return cell + ' '.repeat(width - own)
  let cut = ''
  for (const character of cell) {
    if (stringWidth(cut + character) > width - 1) break
    cut += character
  }
  return `${cut}…${' '.repeat(Math.max(0, width - 1 - stringWidth(cut)))}`
}
