// Changes an instance in any state. Everything is checked before anything is changed, and stored as one change. When the proxy does not take the values of credentials, the whole change is taken back.
import { InvalidState } from '../../../core/errors/common.ts'
import type { Context } from '../context.ts'
import { InstanceExpired } from '../errors.ts'
import { expiryOf } from '../expiry/expiry.ts'
import { msToLiveOf } from '../expiry/watch.ts'
import type { Life } from '../life/record.ts'
import { watchLife } from '../life/watch.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { renewedState } from '../restart/policy.ts'
import type { InstanceSpec } from '../model/record.ts'
import type { InstanceChanges } from '../model/request.ts'
import { replacePolicy, rotated } from './credentials.ts'

/** The lock of the instance is held. */
export async function update (context: Context, instance: LiveInstance, { env, lifetime, healthCheck, restartPolicy, autoStandby, wake }: InstanceChanges): Promise<void> {
  if (lifetime !== undefined && msToLiveOf(instance) <= 0) throw InstanceExpired(instance.name)
  if (instance.record.status !== 'active') throw InvalidState(`update: instance ${instance.name} is being deleted`)
  const { spec, life } = instance.record
  const changes = {
    ...(env === undefined ? {} : { egress: rotated(context, instance.record, env) }),
    ...(restartPolicy === undefined ? {} : { restartPolicy }),
    ...(healthCheck === undefined ? {} : { healthCheck: healthCheck === 'none' ? undefined : healthCheck }),
    ...(autoStandby === undefined ? {} : { autoStandby }),
    ...(wake === undefined ? {} : { wake })
  }
  const lived = { ...(lifetime === undefined ? {} : { expiry: expiryOf(lifetime) }), ...(restartPolicy === undefined ? {} : { restart: renewedState(life.restart) }) }
  const store = async (ofSpec: Partial<InstanceSpec>, ofLife: Partial<Life>): Promise<void> => {
    await instance.save((record) => ({ spec: { ...record.spec, ...ofSpec }, life: { ...record.life, ...ofLife } }))
  }
  await store(changes, lived)
  // A field that was absent before is undefined, and is not stored.
  if (changes.egress !== undefined) await replacePolicy(context, instance, async () => { await store(valuesOf(spec, changes), valuesOf(life, lived)) })
  watchLife(context, instance)
}

function valuesOf<T extends object> (before: T, changes: Partial<T>): Partial<T> {
  return Object.fromEntries(Object.keys(changes).map((key) => [key, Reflect.get(before, key)])) as Partial<T>
}
