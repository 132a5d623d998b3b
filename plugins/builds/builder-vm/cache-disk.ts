// The disk of a builder, which many builds use one after the other. A VM that was killed may leave half-written data, which is discarded: a mark says that the last
// build has ended in order and that everything was written.
import type { GuestLink } from '../../guest/contract.ts'
import { outputOf, putFile, runInGuest } from './guest-command.ts'
import { DISK, STORE, WORK } from './guest-paths.ts'

const MARK = `${DISK}/berth-clean`
/** Above this fill level the cache is emptied: layers are never removed one by one. */
const FULL = 0.8
/** where each container has a folder */
const CONTAINERS = `${STORE}/overlay-containers`
const TIDY_TIMEOUT_MS = 30_000

/** Must be called before the store is used. @param distrust why this build must not use what others have left there @returns why the cache was discarded, for people */
export async function openCacheDisk (link: GuestLink, distrust: string | undefined, signal: AbortSignal): Promise<string | undefined> {
  const reason = distrust === undefined ? await reasonToEmpty(link, signal) : `the cache of this builder is thrown away, since ${distrust}`
  await outputOf(link, ['rm', '-rf', WORK, ...reason === undefined ? [] : [STORE]], signal)
  await outputOf(link, ['rm', '-f', MARK], signal)
  await outputOf(link, ['sync', DISK], signal)
  return reason
}

/** Must be called when nothing of the build runs any more, also after a failure. Until it has resolved, the disk counts as damaged. */
export async function closeCacheDisk (link: GuestLink): Promise<void> {
  const signal = AbortSignal.timeout(TIDY_TIMEOUT_MS)
  // Containers of a build that was stopped: their list is in memory, and is lost with the VM.
  if (await hasContainers(link, signal)) await outputOf(link, ['buildah', 'rm', '--all'], signal)
  await outputOf(link, ['rm', '-rf', WORK], signal)
  await outputOf(link, ['sync'], signal)
  await putFile(link, MARK, '')
  await outputOf(link, ['sync', DISK], signal)
}

/** Other builds have removed theirs. To ask buildah would take it half a second where processors are emulated. */
async function hasContainers (link: GuestLink, signal: AbortSignal): Promise<boolean> {
  const { exitCode, stdout } = await runInGuest(link, { argv: ['find', CONTAINERS, '-mindepth', '1', '-maxdepth', '1', '-type', 'd'], signal })
  return exitCode !== 0 || stdout !== ''
}

async function reasonToEmpty (link: GuestLink, signal: AbortSignal): Promise<string | undefined> {
  if (!(await link.stat(STORE, { follow: false })).exists) return undefined
  if (!(await link.stat(MARK, { follow: false })).exists) return 'the cache of this builder is thrown away, since its last build did not end in order'
  const [blocks = 1, free = 0] = (await outputOf(link, ['stat', '--file-system', '--format=%b %f', DISK], signal)).trim().split(' ').map(Number)
  return 1 - free / blocks > FULL ? 'the cache of this builder is thrown away, since its disk is nearly full' : undefined
}
