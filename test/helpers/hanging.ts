// A step that fails late, each time, as one does whose database hangs.
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'

const HANG_MS = 2500

/** @returns `times`: how often the step was begun; `end`: from now on it works again */
export function hanging<Of extends object> (t: Pick<Test, 'teardown'>, prototype: Of, step: keyof Of & string): { readonly times: number, end (): void } {
  const real: unknown = Reflect.get(prototype, step)
  const end = (): void => { Reflect.set(prototype, step, real) }
  t.teardown(end)
  let times = 0
  Reflect.set(prototype, step, async () => {
    times++
    await delay(HANG_MS)
    throw Object.assign(new Error('Connection lost'), { fatal: true })
  })
  return { get times () { return times }, end }
}
