// A virtual environment of Python with packages in it.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { createHostCommands } from '../../core/process/run.ts'

const MINUTE_MS = 60_000

/** Makes one by pip, for a test whose end removes it. Resolves to its interpreter, beside which the packages' programs are. */
export async function pythonWith (t: Test, ...packages: readonly string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-python-'))
  t.teardown(async () => { await rm(folder, { recursive: true, force: true }) })
  const commands = createHostCommands()
  await commands.run('python3', ['-m', 'venv', folder], { timeoutMs: 2 * MINUTE_MS })
  const python = join(folder, 'bin/python')
  await commands.run(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...packages], { timeoutMs: 5 * MINUTE_MS })
  return python
}
