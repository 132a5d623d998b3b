// Which build runs when: in the order in which they were made, with a limit for the host, and those of one builder one after the other. A build that waits for
// its builder is overtaken by others.

export interface QueuedBuild {
  readonly id: string
  readonly builderId: string | null
  /** Does the build; must not reject. */
  readonly run: () => Promise<void>
}

export class BuildQueue {
  readonly #concurrency: number
  readonly #waiting = new Map<string, QueuedBuild>()
  readonly #running = new Map<string, QueuedBuild>()
  /** builders that currently get no build */
  readonly #blocked = new Set<string>()
  readonly #ending = new Set<Promise<void>>()
  #isOpen = false

  constructor (concurrency: number) {
    this.#concurrency = concurrency
  }

  /** Builds begin from now on. */
  open (): void {
    this.#isOpen = true
    this.#next()
  }

  /** No build begins any more. Resolves when the running ones have ended. */
  async close (): Promise<void> {
    this.#isOpen = false
    await Promise.all(this.#ending)
  }

  add (build: QueuedBuild): void {
    this.#waiting.set(build.id, build)
    this.#next()
  }

  /** Adds a build that is running already; it occupies its place and its builder until it ends. */
  adopt (build: QueuedBuild): void {
    this.#start(build)
  }

  /** Removes a waiting build. Returns whether it did: the build then never runs. */
  take (id: string): boolean {
    return this.#waiting.delete(id)
  }

  /** 1 for the oldest waiting build; `undefined` when it is not waiting. */
  position (id: string): number | undefined {
    const index = this.#waiting.has(id) ? [...this.#waiting.keys()].indexOf(id) : -1
    return index < 0 ? undefined : index + 1
  }

  get waiting (): number { return this.#waiting.size }

  /** The build that a builder is working on. */
  activeOf (builderId: string): string | undefined {
    return [...this.#running.values()].find((build) => build.builderId === builderId)?.id
  }

  /** Builds that wait for a builder, oldest first. */
  waitingFor (builderId: string): string[] {
    return [...this.#waiting.values()].filter((build) => build.builderId === builderId).map(({ id }) => id)
  }

  /** Keeps a builder from getting a build, until `unblock`. False when it has one. */
  block (builderId: string): boolean {
    if (this.activeOf(builderId) !== undefined) return false
    this.#blocked.add(builderId)
    return true
  }

  unblock (builderId: string): void {
    this.#blocked.delete(builderId)
    this.#next()
  }

  #next (): void {
    if (!this.#isOpen) return
    for (const build of [...this.#waiting.values()]) {
      if (this.#running.size >= this.#concurrency) return
      if (build.builderId !== null && (this.#blocked.has(build.builderId) || this.activeOf(build.builderId) !== undefined)) continue
      this.#waiting.delete(build.id)
      this.#start(build)
    }
  }

  #start (build: QueuedBuild): void {
    this.#running.set(build.id, build)
    const ending = build.run().finally(() => {
      this.#ending.delete(ending)
      this.#running.delete(build.id)
      this.#next()
    })
    this.#ending.add(ending)
  }
}
