// A copy of a running machine is of one moment: a program that never stops to write the same to its memory and to its disk goes on in the copy, and finds them the same.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { packageRoot } from '../../core/package-root.ts'
import { skipWithout } from '../../setup/structure/deleted.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { createMachine, follow, lines } from '../helpers/machine.ts'
import { compileProgram } from '../helpers/program.ts'
import { startTestServer } from '../helpers/server.ts'
import { skipFile } from '../helpers/skip-file.ts'

const program = '/bin/pairs'
const disk = '/root/pairs'
/** blocks after which each pair has been looked at */
const ROUND = 128

await skipFile(skipWithout('snapshots'))
const server = await startTestServer(t)
const compiled = await compileProgram(await readFile(join(packageRoot, 'test/integration/programs/pairs.c'), 'utf8'))
const image = await push(server, await busyboxImage({}, [{ path: program.slice(1), content: compiled, mode: 0o755 }]), 'one-moment/busybox:latest')

const numberOf = (line: string): number => Number(/^at (\d+)$/.exec(line)?.[1] ?? NaN)

/** Waits for so many more blocks, each pair of which must be the same. */
async function goesOn (t: Test, id: string, blocks: number): Promise<void> {
  const from = Math.max(0, ...(await lines(server, id)).map(numberOf).filter(Number.isFinite))
  const seen = await follow(server, id, (line) => numberOf(line) >= from + blocks || line.startsWith('differs'))
  t.same(seen.filter((line) => line.startsWith('differs')), [])
}

for (const made of ['booted', 'restored'] as const) {
  t.test(`memory and disk of forks and snapshots of a running machine that was ${made} agree, while it writes both`, { timeout: 900_000 }, async (t) => {
    const { id } = await createMachine(server, image, { entrypoint: [], cmd: [program, disk] })
    await goesOn(t, id, 2 * ROUND)
    if (made === 'restored') {
      await server.sdk.instances.standby(id)
      await server.sdk.instances.restore(id)
      await goesOn(t, id, ROUND + 64)
    }
    for (const name of ['one', 'two']) {
      const fork = await server.sdk.instances.fork(id, { name: `${made}-${name}`, from_running: true, target_state: 'Running' })
      await goesOn(t, fork.id, ROUND + 64)
      await server.sdk.instances.delete(fork.id)
    }
    const snapshot = await server.sdk.instances.snapshots.create(id, { name: made, kind: 'Standby' })
    const fork = await server.sdk.snapshots.fork(snapshot.id, { name: `${made}-later`, target_state: 'Running' })
    await goesOn(t, fork.id, ROUND + 64)
    await goesOn(t, id, ROUND)
    for (const gone of [fork.id, id]) await server.sdk.instances.delete(gone)
  })
}
