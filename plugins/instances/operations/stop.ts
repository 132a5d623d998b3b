// Stops a running instance; its disk stays.
import type { Context } from '../context.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { stoppedState } from '../restart/policy.ts'
import { requireState } from '../model/state.ts'
import { leaving } from './leaving.ts'

/** Returns once the VM is gone and its exit is stored. The wish that it stay stopped is stored first; for an instance that waits to be started again, nothing else is needed. */
export async function stop (context: Context, instance: LiveInstance): Promise<void> {
  const { life, spec } = instance.record
  const isWaiting = instance.state === 'Stopped' && life.restart?.next !== undefined
  if (!isWaiting) requireState('stop', instance.name, instance.derived)
  await leaving(instance, async () => {
    if (spec.restartPolicy !== undefined) await instance.save((record) => ({ life: { ...record.life, restart: stoppedState(record.life.restart) } }))
    if (isWaiting) return
    if (instance.session !== undefined) instance.session.stoppedByHand = true
    await endVm(instance, context.settings.stopGraceMs)
  })
}

/** Ends the VM in every state. With `graceMs` 0 its program gets no signal first. */
export async function endVm (instance: LiveInstance, graceMs: number): Promise<void> {
  const { session } = instance
  await leaving(instance, async () => {
    if (session !== undefined) {
      await session.shutDown(graceMs)
      await session.ended
    }
    await instance.settling
  })
}
