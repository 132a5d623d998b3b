// Many forks of one snapshot, asked for at once: how soon each answers a command, and how many a second that makes.
import { boot, exec, field, idOf, remove, running, type Berth } from '../berth.ts'
import { figureOf, print, quantile, series, takeTurns, type FigureOptions, type Keep, type Series } from '../harness.ts'

/** at once */
const forks = 16
const program = ['/bin/sh', '-c', 'read nonce < /proc/sys/kernel/random/uuid; echo $nonce > /dev/shm/nonce; echo ready; sleep 6000']

interface Side {
  readonly berth: Berth
  readonly nonce: string
  readonly snapshot: string
  readonly rate: Series
  readonly p50: Series
  readonly p95: Series
}

export interface ManyForksOptions {
  readonly runs: number
  /** a server of another commit, which takes turns with ours */
  readonly before?: Berth
  /** Waits until our server is ready for the next burst: then it works at nothing in the background. */
  readonly ready?: () => Promise<void>
  /** what it keeps ready, for the note */
  readonly keeps?: string
}

export async function manyForks (ours: Berth, { runs, before, ready = async () => {}, keeps = '' }: ManyForksOptions): Promise<void> {
  const sides = await Promise.all([sideOf(ours, 'this build'), ...before === undefined ? [] : [sideOf(before, 'the other build')]])
  await takeTurns({
    runs,
    sides: sides.map((side) => async (run, keep) => {
      await measure(side, run, keep)
      if (side.berth === ours) await ready()
    })
  })
  const [own, other] = sides
  if (own === undefined) throw new Error('there is nothing to measure')
  const note = `${forks} forks asked for at once${keeps}, 256 MB and 1 vCPU each; every one is Running and its exec finds the memory of the snapshot`
  const against = (theirs: Series | undefined, ratioAtMost?: number): FigureOptions => ({ note, ...theirs === undefined ? {} : { other: theirs, ...ratioAtMost === undefined ? {} : { ratioAtMost } } })
  print(figureOf(`${forks} forks of one snapshot: forks per second`, 'forks/s', own.rate.values, against(other?.rate)))
  print(figureOf(`${forks} forks of one snapshot: p50 of POST fork to an answer of exec`, 'ms', own.p50.values, against(other?.p50)))
  print(figureOf(`${forks} forks of one snapshot: p95 of POST fork to an answer of exec`, 'ms', own.p95.values, against(other?.p95, 0.67)))
  for (const { berth, snapshot } of sides) await berth.api.call('DELETE', `/snapshots/${snapshot}`)
}

async function sideOf (berth: Berth, name: string): Promise<Side> {
  const source = await boot(berth, { argv: program, size: '256MB', name: 'original' })
  const nonce = await exec(berth, source, ['/bin/cat', '/dev/shm/nonce'])
  const snapshot = idOf(await berth.api.call('POST', `/instances/${source}/snapshots`, { name: 'of-all', kind: 'Standby' }))
  await remove(berth, source)
  return { berth, nonce, snapshot, rate: series(`forks per second, ${name}`), p50: series(`p50, ${name}`), p95: series(`p95, ${name}`) }
}

async function measure ({ berth, nonce, snapshot, rate, p50, p95 }: Side, run: number, keep: Keep): Promise<void> {
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
}

async function forkAndAsk (berth: Berth, snapshot: string, name: string, nonce: string): Promise<string> {
  const answer = await berth.api.call('POST', `/snapshots/${snapshot}/fork`, { name, target_state: 'Running' })
  const id = idOf(answer)
  if (field(answer, 'state') !== 'Running') await running(berth, id)
  const found = await exec(berth, id, ['/bin/cat', '/dev/shm/nonce'])
  if (found !== nonce) throw new Error(`the fork ${name} has ${found} in its memory instead of ${nonce}`)
  return id
}
