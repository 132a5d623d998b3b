// A folder with a `berth` to be found by PATH.
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { testFolder } from '../helpers/folder.ts'
import { mainFile } from './berth.ts'

export async function onPath (t: Test): Promise<string> {
  const folder = testFolder(t)
  await writeFile(join(folder, 'berth'), `#!/bin/sh\nexec '${process.execPath}' '${mainFile}' "$@"\n`)
  await chmod(join(folder, 'berth'), 0o755)
  return folder
}
