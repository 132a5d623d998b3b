// A step of a scripted host, or of the storing, that takes as long as the test wants.
import type { Test } from 'tap'
import { LiveInstance } from '../../../plugins/instances/model/live-instance.ts'
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

/** Holds the next change of an instance before it is stored. */
export function holdSave (t: Pick<Test, 'teardown'>): { readonly reached: Promise<void>, readonly go: () => void } {
  const { save } = LiveInstance.prototype
  let go = (): void => {}
  const held = new Promise<void>((resolve) => { go = resolve })
  t.teardown(() => {
    LiveInstance.prototype.save = save
    go()
  })
  const reached = new Promise<void>((resolve) => {
    LiveInstance.prototype.save = async function (this: LiveInstance, ...args: Parameters<typeof save>) {
      LiveInstance.prototype.save = save
      resolve()
      await held
      await Reflect.apply(save, this, args)
    }
  })
  return { reached, go }
}
