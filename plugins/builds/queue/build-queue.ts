// Which build runs when. In the order in which they were made, as many at a time as the host is to do, and those of one builder one after the other: whoever waits for
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
  /** builders that get no build for now */
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

  /** No build begins any more. Resolves when those that run are over. */
  async close (): Promise<void> {
    this.#isOpen = false
    await Promise.all(this.#ending)
  }

  add (build: QueuedBuild): void {
    this.#waiting.set(build.id, build)
    this.#next()
  }

  /** Takes up what runs already, and has its place and its builder until it is over. */
  adopt (build: QueuedBuild): void {
    this.#start(build)
  }

  /** Takes a build out that waits. Whether it did: from then on it never runs. */
  take (id: string): boolean {
    return this.#waiting.delete(id)
  }

  /** 1 for the oldest of all that wait; `undefined` when it does not. */
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
