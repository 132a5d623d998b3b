// Compiles small static programs, so that tests need nothing that an image or a host would have to bring.
import { createHash, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { packageRoot } from '../../core/package-root.ts'
import { createHostCommands } from '../../core/process/run.ts'

const FLAGS = ['-static', '-Os', '-Wall', '-Wextra', '-Werror']
const CACHE = join(packageRoot, '.cache/programs')

/** The bytes of an executable made from C source. It is compiled once, and kept until the source is another. */
export async function compileProgram (source: string): Promise<Buffer> {
  const program = join(CACHE, createHash('sha256').update(`${process.arch} ${FLAGS.join(' ')}\n${source}`).digest('hex').slice(0, 32))
  if (!existsSync(program)) {
    await mkdir(CACHE, { recursive: true })
    // Files of tests run side by side, and may compile the same.
    const unfinished = `${program}.${randomUUID()}`
    await createHostCommands().run('cc', [...FLAGS, '-x', 'c', '-o', unfinished, '-'], { input: source, timeoutMs: 60_000 })
    await rename(unfinished, program)
  }
  return await readFile(program)
}
