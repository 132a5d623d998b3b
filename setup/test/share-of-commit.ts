// Which part of a table of many cases a run plays: another one for another commit.
import { spawnSync } from 'node:child_process'
import { packageRoot } from '../../core/package-root.ts'

/** `BERTH_WHOLE_TABLES=1` plays all of each. */
export const playsWholeTables = process.env['BERTH_WHOLE_TABLES'] === '1'

/** From 0 to below `parts`. Where there is no commit, the sources came in an archive: the first part. */
export function partOfCommit (parts: number): number {
  const { status, stdout } = spawnSync('git', ['rev-parse', 'HEAD'], { cwd: packageRoot, encoding: 'utf8' })
  return status === 0 ? parseInt(stdout.slice(0, 8), 16) % parts : 0
}

/** One of `parts` parts of a table. */
export function shareOfCommit<T> (table: readonly T[], parts: number): readonly T[] {
  if (playsWholeTables) return table
  const part = partOfCommit(parts)
  return table.filter((_item, index) => index % parts === part)
}
