// Checks the files with keys on this host: whoever can read one has the key.
import { stat } from 'node:fs/promises'
import type { Look } from './check.ts'

const OTHERS = 0o077

export async function keyFiles (files: readonly string[]): Promise<Look> {
  const modes = await Promise.all(files.map(async (file) => ({ file, mode: await stat(file).then(({ mode }) => mode & 0o777, () => undefined) })))
  const there = modes.filter((each): each is { file: string, mode: number } => each.mode !== undefined)
  const open = there.filter(({ mode }) => (mode & OTHERS) !== 0)
  if (open.length > 0) return { verdict: 'failed', found: `others may reach ${open.map(({ file, mode }) => `${file} (${mode.toString(8).padStart(4, '0')})`).join(', ')}`, remedy: `chmod 600 ${open.map(({ file }) => file).join(' ')}, and make new keys` }
  return { verdict: 'ok', found: there.length === 0 ? 'none that this user can see' : there.map(({ file, mode }) => `${file} (${mode.toString(8).padStart(4, '0')})`).join(', ') }
}
