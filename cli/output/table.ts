// Rows in columns that fit the terminal.
import stringWidth from 'string-width'
import { clean } from '../../core/clean-text.ts'

/** The gap between two columns, and the width below which no column is cut: the second pair when the first is still too wide. */
const SPACINGS = [{ gap: 3, least: 8 }, { gap: 1, least: 4 }] as const

/** One line for each row, without trailing blanks; the widest columns are cut when `width` (in cells) is given and too small. */
export function table (headings: readonly string[], rows: readonly (readonly string[])[], width?: number): string[] {
  const cells = [headings, ...rows.map((row) => row.map(clean))]
  const widths = headings.map((_, column) => Math.max(...cells.map((row) => stringWidth(row[column] ?? ''))))
  const gap = width === undefined ? SPACINGS[0].gap : shrink(widths, width)
  return cells.map((row) => row.map((cell, column) => fitted(cell, widths[column] ?? 0)).join(' '.repeat(gap)).trimEnd())
}

/** Shrinks the widths and returns the gap between the columns. */
function shrink (widths: number[], width: number): number {
  for (const { gap, least } of SPACINGS) {
    const total = (): number => widths.reduce((sum, each) => sum + each, gap * (widths.length - 1))
    while (total() > width && Math.max(...widths) > least) {
      const widest = widths.indexOf(Math.max(...widths))
      widths[widest] = Math.max(least, (widths[widest] ?? 0) - (total() - width), Math.max(...widths.filter((_, index) => index !== widest), least) - 1)
    }
    if (total() <= width) return gap
  }
  return SPACINGS[1].gap
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
