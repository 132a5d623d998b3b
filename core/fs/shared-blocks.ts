// How many bytes of a file other files have as well, where the file system shares blocks (reflinks on XFS and btrfs).
import { statfs } from 'node:fs/promises'
import type { HostCommands } from '../contracts/services.ts'
import { HostCommandFailed, HostCommandMissing } from '../process/errors.ts'

/** ext2 to ext4 and tmpfs, by their numbers in statfs(2) */
const WITHOUT_SHARING = new Set([0xef53, 0x01021994])
const LONGEST_MS = 10_000

/** Undefined when the file system does not tell it, or the file has too many pieces to ask about. */
export async function sharedBytes (commands: HostCommands, path: string): Promise<number | undefined> {
  if (WITHOUT_SHARING.has((await statfs(path)).type)) return 0
  try {
    return parseShared((await commands.run('filefrag', ['-v', path], { timeoutMs: LONGEST_MS })).stdout)
  } catch (error) {
    if (error instanceof HostCommandFailed || HostCommandMissing.is(error)) return undefined
    throw error
  }
}

/** Adds up the extents that `filefrag -v` calls shared; undefined when it does not say how large a block is. */
export function parseShared (text: string): number | undefined {
  const blockBytes = /blocks? of (\d+) bytes\)/.exec(text)?.[1]
  if (blockBytes === undefined) return undefined
  let blocks = 0
  for (const line of text.split('\n')) {
    const [number, , , length, ...rest] = line.split(':')
    if (/^ *\d+$/.test(number ?? '') && rest.at(-1)?.includes('shared') === true) blocks += Number(length)
  }
  return blocks * Number(blockBytes)
}
