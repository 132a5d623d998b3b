// Which part of what is too much for every commit a run plays: another one for another commit.
import { spawnSync } from 'node:child_process'
import { packageRoot } from '../../core/package-root.ts'

/** `BERTH_WHOLE_TABLES=1` plays all of it. */
export const playsWholeTables = process.env['BERTH_WHOLE_TABLES'] === '1'

/** hexadecimal digits of the commit's name that a part is told by */
const DIGITS = 8

/**
 * From 0 to below `parts`.
 * @param of the tables of a file, or the files of a run. They ask different digits: with the same ones, of a table of six parts a file that a third of the commits play would only ever play two.
 */
export function partOfCommit (parts: number, of: 'tables' | 'files' = 'tables'): number {
  const { status, stdout } = spawnSync('git', ['rev-parse', 'HEAD'], { cwd: packageRoot, encoding: 'utf8' })
  const from = of === 'tables' ? 0 : DIGITS
  // Where there is no commit, the sources came in an archive.
  return status === 0 ? parseInt(stdout.slice(from, from + DIGITS), 16) % parts : 0
}

/** One of `parts` parts of a table. */
export function shareOfCommit<T> (table: readonly T[], parts: number): readonly T[] {
  if (playsWholeTables) return table
  const part = partOfCommit(parts)
  return table.filter((_item, index) => index % parts === part)
}
