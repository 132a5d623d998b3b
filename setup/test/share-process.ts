// Which test files run in one process, one after the other. To load tap and the modules of the server takes a process up to a second, and the server's code is several times as fast once
// it has been compiled: files of one folder in one process take two thirds of the processor time.
import { readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { estimate, type Durations } from './durations.ts'
import type { TestFile } from './files.ts'
import { tierOf } from './tiers.ts'

/** Files that start few programs, if any: those of other folders have servers and VMs as processes, and their own process costs them little. */
const SHARING = ['test/core/', 'test/plugins/', 'test/proxy/']

/** What stands in a file that changes something of its process, or measures it; the reason follows. */
const OWN_PROCESS = /^\/\/ Own process: \S/m

/** Few and short enough that the other processors do not wait for the last process. */
const MOST_FILES = 12
const MOST_SECONDS = 40

/** Those that ask for a process of their own. */
export async function ownProcesses (root: string, files: readonly TestFile[]): Promise<Set<TestFile>> {
  const own = await Promise.all(files.map(async (file) => {
    const isSharing = SHARING.some((folder) => file.source.startsWith(folder)) && tierOf(file.source) === 'fast'
    return !isSharing || OWN_PROCESS.test(await readFile(`${root}/${file.source}`, 'utf8'))
  }))
  return new Set(files.filter((_, index) => own[index]))
}

/** The files of each process. Files of one folder share, as they load the same modules. */
export function shareProcesses (files: readonly TestFile[], own: ReadonlySet<TestFile>, durations: Durations): Array<readonly [TestFile, ...TestFile[]]> {
  const processes: Array<[TestFile, ...TestFile[]]> = []
  const open = new Map<string, { files: [TestFile, ...TestFile[]], seconds: number }>()
  for (const file of files) {
    const seconds = estimate(durations, file.source)
    const folder = dirname(file.source)
    const found = open.get(folder)
    if (own.has(file) || seconds >= MOST_SECONDS) {
      processes.push([file])
    } else if (found !== undefined && found.files.length < MOST_FILES && found.seconds + seconds <= MOST_SECONDS) {
      found.files.push(file)
      found.seconds += seconds
    } else {
      const begun: [TestFile, ...TestFile[]] = [file]
      processes.push(begun)
      open.set(folder, { files: begun, seconds })
    }
  }
  return processes
}
