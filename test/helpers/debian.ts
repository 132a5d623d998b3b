// A small Debian system as a tar archive, for tests that need the programs that people really use: made as the image of builds is, and kept in the cache of this project.
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { packageRoot } from '../../core/package-root.ts'
import { createHostCommands } from '../../core/process/run.ts'
import { fetchPackages, NEEDLESS } from '../../core/library/debian/packages.ts'
import { archive, makeRoot, ROOT_RECIPE } from '../../core/library/debian/root.ts'

const commands = createHostCommands()
const cache = join(packageRoot, '.cache/debian')

/** What an archive does without, besides what none has. */
export interface LeftOut {
  /** packages that the wanted ones depend on */
  readonly packages: readonly string[]
  /** folders, without a slash at the beginning, whose content is not unpacked */
  readonly folders: readonly string[]
}

/** The path of an archive with these packages and what they need, made first when it is not in the cache. */
export async function debianArchive (packages: readonly string[], without: LeftOut = { packages: [], folders: [] }): Promise<string> {
  // Which packages there are depends on the system that this runs on, and a checkout may be used by several.
  const system = await readFile('/etc/os-release', 'utf8')
  const recipe = createHash('sha256').update(JSON.stringify([system, packages, without, NEEDLESS, ROOT_RECIPE])).digest('hex').slice(0, 12)
  const file = join(cache, `${recipe}.tar`)
  if (existsSync(file)) return file
  await mkdir(cache, { recursive: true })
  const work = await mkdtemp(join(cache, 'making-'))
  try {
    await fetchPackages(commands, work, packages, { without: without.packages })
    await archive(commands, await makeRoot(commands, work, { without: without.folders }), join(work, 'system.tar'))
    await rename(join(work, 'system.tar'), file)
  } finally {
    await rm(work, { recursive: true, force: true })
  }
  return file
}
