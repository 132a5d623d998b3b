// Stops a running instance; its disk stays.
import type { Context } from '../context.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { stoppedState } from '../restart/policy.ts'
import { requireState } from '../model/state.ts'

/** Returns once the VM is gone and its exit is stored. That it is not to be started again is stored before. One that waits to be started again is stopped by that alone. */
export async function stop (context: Context, instance: LiveInstance): Promise<void> {
  const { life, spec } = instance.record
  const isWaiting = instance.state === 'Stopped' && life.restart?.next !== undefined
  if (!isWaiting) requireState('stop', instance.name, instance.derived)
  if (spec.restartPolicy !== undefined) await instance.save({ life: { ...life, restart: stoppedState(life.restart) } })
  if (isWaiting) return
  if (instance.session !== undefined) instance.session.stoppedByHand = true
  await endVm(instance, context.settings.stopGraceMs)
}

/** Ends the VM in whatever state it is. With `graceMs` 0 its program is not asked first. */
export async function endVm (instance: LiveInstance, graceMs: number): Promise<void> {
  const { session } = instance
  if (session !== undefined) {
    await session.shutDown(graceMs)
    await session.ended
  }
  await instance.settling
}
