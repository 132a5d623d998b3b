// Which processes the server keeps running, for people to look at: each plugin says of its own, whether it supervises them here, finds them again after a restart, or is told of them by a driver.
import type { ProcessIdentity } from '../contracts/services.ts'
import { isAlive } from './identity.ts'

export interface ProcessEnd {
  /** such as `has ended (SIGKILL)` */
  readonly reason: string
  /** ms since the epoch */
  readonly at: number
}

export interface KeptProcess {
  /** what it is, for people: `registry store` */
  readonly name: string
  /** id of the plugin whose process it is */
  readonly plugin: string
  /** undefined while it does not run */
  readonly identity?: ProcessIdentity
  /** `hung`: it runs and does not answer; `ended`: it does not run, and is about to be started again */
  readonly state: 'running' | 'paused' | 'hung' | 'ended'
  /** how often this server has started it again; absent where that is not counted */
  readonly restarts?: number
  readonly lastEnd?: ProcessEnd
  /** id of the instance that it runs for */
  readonly instanceId?: string
}

/** The service `processes`. */
export interface ProcessRegister {
  /** @param source called whenever somebody looks: the processes that there are at that moment. Returns what takes it out again. */
  add (source: () => Iterable<KeptProcess>): () => void
  /** All of them, by plugin and name. */
  list (): readonly KeptProcess[]
}

declare module '../plugins/manifest.ts' {
  interface Cradle {
    readonly processes: ProcessRegister
  }
}

export function createProcessRegister (): ProcessRegister {
  const sources = new Set<() => Iterable<KeptProcess>>()
  return {
    add (source) {
      sources.add(source)
      return () => { sources.delete(source) }
    },
    list: () => [...sources].flatMap((source) => [...source()]).sort((a, b) => a.plugin.localeCompare(b.plugin) || a.name.localeCompare(b.name))
  }
}

export interface Tracking {
  readonly processes: ProcessRegister
  readonly plugin: string
  readonly name: string
  /** the process as its owner knows it; undefined: it is not meant to run now, or has not started yet */
  readonly identity: () => ProcessIdentity | undefined
}

/** One process that its owner starts again when it ends: the count of that, and why it ended last. */
export class TrackedProcess {
  readonly #leave: () => void
  #restarts = 0
  #lastEnd: ProcessEnd | undefined
  /** whether it has ended, and was not started again yet */
  #isDown = false

  constructor ({ processes, plugin, name, identity }: Tracking) {
    this.#leave = processes.add(() => {
      const known = identity()
      const runs = known !== undefined && isAlive(known)
      if (known === undefined && !this.#isDown) return []
      return [{ name, plugin, state: runs ? 'running' : 'ended', restarts: this.#restarts, ...runs ? { identity: known } : {}, ...this.#lastEnd === undefined ? {} : { lastEnd: this.#lastEnd } }]
    })
  }

  ended (reason: string): void {
    this.#lastEnd = { reason, at: Date.now() }
    this.#isDown = true
  }

  started (): void {
    if (this.#isDown) this.#restarts++
    this.#isDown = false
  }

  /** Nobody keeps it running any more. */
  leave (): void {
    this.#leave()
  }
}
