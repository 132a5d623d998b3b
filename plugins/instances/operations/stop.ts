// Stops a running instance; its disk stays.
import type { Context } from '../context.ts'
import type { LiveInstance } from '../live-instance.ts'
import { requireState } from '../state.ts'

/** Returns once the VM is gone and its exit is stored. */
export async function stop (context: Context, instance: LiveInstance): Promise<void> {
  requireState('stop', instance.name, instance.derived)
  await endVm(instance, context.settings.stopGraceMs)
}

/** Ends the VM in whatever state it is. With `graceMs` 0 its program is not asked first. */
export async function endVm (instance: LiveInstance, graceMs: number): Promise<void> {
  const { machine } = instance
  if (machine !== undefined) {
    await machine.shutDown(graceMs)
    await machine.ended
  }
  await instance.settling
}
