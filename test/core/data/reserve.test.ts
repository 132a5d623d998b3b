// A full disk, really full: what is there can be deleted, and a server starts on it.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { withoutMounts } from '../../helpers/rights.ts'

const PROGRAM = fileURLToPath(new URL('programs/on-full-disk.js', import.meta.url))
const skip = withoutMounts

/** Both servers in a mount namespace of their own, whose end takes the file system with it. The first may end by a signal. */
function onSmallDisk (folder: string, end: 'stop' | 'kill'): unknown[] {
  const script = `mount -t tmpfs -o size=24M tmpfs '${folder}' && for order in ${end} again; do '${process.execPath}' --enable-source-maps '${PROGRAM}' '${folder}' $order; done`
  const { stdout, stderr } = spawnSync('setpriv', ['--pdeathsig', 'KILL', 'unshare', '--mount', '--propagation', 'private', 'sh', '-c', script], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  const lines = stdout.split('\n').filter((line) => line.startsWith('['))
  if (lines.length !== 2) throw new Error(stderr)
  return lines.map((line): unknown => JSON.parse(line))
}

for (const [end, how] of [['stop', 'in order'], ['kill', 'by kill -9']] as const) {
  t.test(`on a full disk rows can be deleted, also by the next server after one that ended ${how}`, { skip }, async (t) => {
    t.strictSame(onSmallDisk(t.testdir(), end), [
      ['200 {"left":19}', '200 {"left":18}'],
      ['200 {"left":17}', '200 {"left":16}']
    ])
  })
}
