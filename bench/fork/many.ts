// Many forks of one snapshot, asked for at once: how soon each answers a command, and how many a second that makes.
import { boot, exec, field, idOf, remove, running, type Berth } from '../berth.ts'
import { figureOf, print, quantile, series, takeTurns } from '../harness.ts'

const forks = 16
const program = ['/bin/sh', '-c', 'read nonce < /proc/sys/kernel/random/uuid; echo $nonce > /dev/shm/nonce; echo ready; sleep 6000']

export async function manyForks (berth: Berth, runs: number): Promise<void> {
  const source = await boot(berth, { argv: program, size: '256MB', name: 'original' })
  const nonce = await exec(berth, source, ['/bin/cat', '/dev/shm/nonce'])
  const snapshot = idOf(await berth.api.call('POST', `/instances/${source}/snapshots`, { name: 'of-all', kind: 'Standby' }))
  await remove(berth, source)
  const rate = series('forks per second')
  const p50 = series('p50')
  const p95 = series('p95')
  await takeTurns({
    runs,
    sides: [async (run, keep) => {
      const began = performance.now()
      const made = await Promise.all(Array.from({ length: forks }, async (_unused, index) => {
        const id = await forkAndAsk(berth, snapshot, `many-${run}-${index}`, nonce)
        return { id, ms: performance.now() - began }
      }))
      const sorted = made.map(({ ms }) => ms).sort((a, b) => a - b)
      keep(rate, forks / ((sorted.at(-1) ?? NaN) / 1000))
      keep(p50, quantile(sorted, 0.5))
      keep(p95, quantile(sorted, 0.95))
      await Promise.all(made.map(async ({ id }) => await remove(berth, id)))
    }]
  })
  const note = `${forks} forks asked for at once, 256 MB and 1 vCPU each; every one is Running and its exec finds the memory of the snapshot`
  print(figureOf(`${forks} forks of one snapshot: forks per second`, 'forks/s', rate.values, { note }))
  print(figureOf(`${forks} forks of one snapshot: p50 of POST fork to an answer of exec`, 'ms', p50.values, { note }))
  print(figureOf(`${forks} forks of one snapshot: p95 of POST fork to an answer of exec`, 'ms', p95.values, { note }))
  await berth.api.call('DELETE', `/snapshots/${snapshot}`)
}

async function forkAndAsk (berth: Berth, snapshot: string, name: string, nonce: string): Promise<string> {
  const answer = await berth.api.call('POST', `/snapshots/${snapshot}/fork`, { name, target_state: 'Running' })
  const id = idOf(answer)
  if (field(answer, 'state') !== 'Running') await running(berth, id)
  const found = await exec(berth, id, ['/bin/cat', '/dev/shm/nonce'])
  if (found !== nonce) throw new Error(`the fork ${name} has ${found} in its memory instead of ${nonce}`)
  return id
}
