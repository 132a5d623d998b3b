// A step of a scripted host that takes as long as the test wants.
import type { Test } from 'tap'
import type { ImagingStep, ScriptedHost } from './scripted.ts'

/** Holds the next such step: says when it is there, and lets it go on, at the end of the test at the latest. */
export function holdStep (t: Pick<Test, 'teardown'>, host: ScriptedHost, wanted: ImagingStep): { readonly reached: Promise<void>, readonly go: () => void } {
  let go = (): void => {}
  const held = new Promise<void>((resolve) => { go = resolve })
  t.teardown(() => { go() })
  const reached = new Promise<void>((resolve) => {
    host.onStep = async (step) => {
      if (step !== wanted) return
      host.onStep = undefined
      resolve()
      await held
    }
  })
  return { reached, go }
}
