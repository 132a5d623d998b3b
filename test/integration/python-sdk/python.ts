// A virtual environment with the official Python SDK in it.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { createHostCommands } from '../../../core/process/run.ts'

const PACKAGE = 'hypeman==0.28.0'
const MINUTE_MS = 60_000

/** Makes one by pip, for a test whose end removes it. Resolves to its interpreter. */
export async function pythonWithSdk (t: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-python-'))
  t.teardown(async () => { await rm(folder, { recursive: true, force: true }) })
  const commands = createHostCommands()
  await commands.run('python3', ['-m', 'venv', folder], { timeoutMs: 2 * MINUTE_MS })
  const python = join(folder, 'bin/python')
  await commands.run(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', PACKAGE], { timeoutMs: 5 * MINUTE_MS })
  return python
}
