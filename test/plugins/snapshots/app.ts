// The application with instances on a scripted host, snapshots, and a clock that the test sets.
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Plugin } from '../../../core/plugins/manifest.ts'
import type { Clock } from '../../../plugins/snapshots/clock.ts'
import { snapshotsPlugin } from '../../../plugins/snapshots/index.ts'
import { startApp, type Answer, type StartOptions, type TestApp } from '../instances/app.ts'
import { until } from '../instances/crash.ts'

/** A clock that stands still between the test's turns. */
export class TestClock implements Clock {
  ms = Date.UTC(2026, 0, 31, 12)
  chance = 0
  #work: (() => Promise<void>) | undefined
  #elapsed = 0

  now (): number { return this.ms }
  elapsed (): number { return this.#elapsed }
  random (): number { return this.chance }
  every (_intervalMs: number, work: () => Promise<void>): { stop (): Promise<void> } {
    this.#work = work
    return { stop: async () => { this.#work = undefined } }
  }

  /** The time passes, and schedules are looked at once. */
  async pass (ms: number): Promise<void> {
    this.ms += ms
    this.#elapsed += ms
    if (this.#work === undefined) throw new Error('nothing is repeated')
    await this.#work()
  }
}

export interface SnapshotsApp extends TestApp {
  readonly clock: TestClock
  /** takes a snapshot and returns its id */
  take (ref: string, kind?: 'Standby' | 'Stopped', fields?: Record<string, unknown>): Promise<string>
  /** waits until a snapshot is in this state of compression */
  compressed (id: string, state?: string): Promise<Answer>
  /** where a snapshot's files are */
  folder (id: string): string
}

export async function startWithSnapshots (t: Test, options: StartOptions & { readonly clock?: TestClock, readonly extra?: readonly Plugin[] } = {}): Promise<SnapshotsApp> {
  const clock = options.clock ?? new TestClock()
  const app = await startApp(t, { ...options, plugins: [snapshotsPlugin(clock), ...options.extra ?? []] })
  const { call, dataDir } = app
  return {
    ...app,
    clock,
    async take (ref, kind = 'Standby', fields = {}) {
      const { status, body, text } = await call('POST', `/instances/${ref}/snapshots`, { kind, ...fields })
      if (status !== 201) throw new Error(`a snapshot of ${ref} answered ${status} ${text}`)
      return String(body['id'])
    },
    async compressed (id, state = 'compressed') {
      let answer = await call('GET', `/snapshots/${id}`)
      await until(async () => {
        answer = await call('GET', `/snapshots/${id}`)
        return answer.body['compression_state'] === state
      })
      return answer
    },
    folder: (id) => join(dataDir, 'snapshots', id)
  }
}
