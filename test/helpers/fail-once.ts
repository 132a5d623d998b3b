// A step that fails once, as a database does that goes away, or a disk.
import type { Test } from 'tap'

/** @param done whether it was done all the same, and only its answer was lost */
export function failOnce<Of extends object> (t: Pick<Test, 'teardown'>, prototype: Of, step: keyof Of & string, { done }: { readonly done: boolean }): void {
  const real: unknown = Reflect.get(prototype, step)
  if (typeof real !== 'function') throw new Error(`${step} is no step`)
  const restore = (): void => { Reflect.set(prototype, step, real) }
  t.teardown(restore)
  Reflect.set(prototype, step, async function (this: Of, ...args: unknown[]) {
    restore()
    if (done) await Reflect.apply(real, this, args)
    throw Object.assign(new Error('Connection lost'), { fatal: true })
  })
}
