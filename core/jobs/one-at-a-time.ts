// Works that must not run side by side.

/** Runs works one after the other, in the order in which they were asked for. One that fails tells its caller, and keeps none of the others. */
export class OneAtATime {
  #last: Promise<unknown> = Promise.resolve()

  /** Settles as the work does. */
  run<T> (work: () => T | Promise<T>): Promise<T> {
    const done = this.#last.then(work)
    this.#last = done.catch(() => {})
    return done
  }

  /** Resolves when all that was asked for is over. */
  async idle (): Promise<void> { await this.#last }
}
