// Times of the steps of an operation, for its log.

export interface Steps {
  /** Notes a step, which began at the last note. */
  note (name: string): void
  /** Notes the duration of one of several steps that run at the same time. */
  during<T> (name: string, work: Promise<T>): Promise<T>
  /** `row 3 ms, disks 5 ms; done in 8 ms` */
  text (): string
}

export function createSteps (): Steps {
  const began = performance.now()
  let last = began
  const noted: string[] = []
  return {
    note (name) {
      const now = performance.now()
      noted.push(`${name} ${ms(now - last)}`)
      last = now
    },
    async during (name, work) {
      const start = performance.now()
      const result = await work
      noted.push(`${name} ${ms(performance.now() - start)}`)
      return result
    },
    text: () => [noted.join(', '), `done in ${ms(performance.now() - began)}`].join('; ')
  }
}

function ms (duration: number): string {
  return `${duration < 10 ? duration.toFixed(1) : Math.round(duration)} ms`
}
