// Changes what can be changed of an instance in any state. Everything is judged before anything is changed; the credentials come first, since only they can fail.
import { InvalidState } from '../../../core/errors/common.ts'
import { checkAutoStandby } from '../auto-standby/validate.ts'
import type { Context } from '../context.ts'
import { InstanceExpired } from '../errors.ts'
import { expiryOf } from '../expiry/expiry.ts'
import { checkLifetime } from '../expiry/validate.ts'
import { msToLiveOf } from '../expiry/watch.ts'
import { checkHealthCheck } from '../health/validate.ts'
import { watchLife } from '../life/watch.ts'
import type { LiveInstance } from '../live-instance.ts'
import { renewedState } from '../restart/policy.ts'
import { checkRestartPolicy } from '../restart/validate.ts'
import type { UpdateInstance } from '../schemas.ts'
import { replacePolicy, rotated } from './credentials.ts'

/** The lock of the instance is held. */
export async function update (context: Context, instance: LiveInstance, body: UpdateInstance): Promise<void> {
  const lifetime = checkLifetime(body)
  const healthCheck = checkHealthCheck(body.health_check, instance.record.spec.skipGuestAgent)
  const restartPolicy = checkRestartPolicy(body.restart_policy)
  const autoStandby = checkAutoStandby(body.auto_standby)
  if (lifetime !== undefined && msToLiveOf(instance) <= 0) throw InstanceExpired(instance.name)
  if (instance.record.status !== 'active') throw InvalidState(`update: instance ${instance.name} is being deleted`)
  if (body.env !== undefined) await replacePolicy(context, instance, rotated(context, instance.record, body.env))
  if (lifetime === undefined && restartPolicy === undefined && body.health_check === undefined && autoStandby === undefined && body.wake === undefined) return
  const { spec, life } = instance.record
  await instance.save({
    spec: { ...spec, ...(restartPolicy === undefined ? {} : { restartPolicy }), ...(body.health_check === undefined ? {} : { healthCheck }), ...(autoStandby === undefined ? {} : { autoStandby }), ...(body.wake === undefined ? {} : { wake: body.wake }) },
    life: { ...life, ...(lifetime === undefined ? {} : { expiry: expiryOf(lifetime) }), ...(restartPolicy === undefined ? {} : { restart: renewedState(life.restart) }) }
  })
  watchLife(context, instance)
}
