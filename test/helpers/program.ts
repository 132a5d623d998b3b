// Compiles small static programs for guests, so that tests need nothing that an image would have to bring.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createHostCommands } from '../../core/process/run.ts'

/** The bytes of a static executable made from C source. `folder` is the test's own. */
export async function compileProgram (folder: string, name: string, source: string): Promise<Buffer> {
  const file = join(folder, `${name}.c`)
  const program = join(folder, name)
  await writeFile(file, source)
  await createHostCommands().run('cc', ['-static', '-Os', '-Wall', '-Wextra', '-Werror', '-o', program, file], { timeoutMs: 60_000 })
  return await readFile(program)
}
