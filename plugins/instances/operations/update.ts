// Gives credentials of an instance other values while it runs on. The row comes first, so that a crash leaves the policy to the next start of the
// server, which takes it from there; the answer comes only once no request carries an older value.
import { InvalidRequest } from '../../../core/errors/common.ts'
import type { EgressSpec } from '../../egress/contract.ts'
import type { Context } from '../context.ts'
import type { LiveInstance } from '../live-instance.ts'
import { requirePolicy } from '../parts/policy.ts'
import { pause } from '../pause.ts'
import type { UpdateInstance } from '../schemas.ts'
import { requireState } from '../state.ts'
import { checkEnv, printable } from '../validate/env.ts'

const FIRST_RETRY_MS = 1000
const LAST_RETRY_MS = 30_000

/** The lock of the instance is held. When it rejects, row and proxy have the values of before, or will as soon as the proxy answers. */
export async function update (context: Context, instance: LiveInstance, { env }: UpdateInstance): Promise<void> {
  checkEnv('env', env)
  requireState('update', instance.name, instance.derived)
  const found = requirePolicy(context, instance.record, 'env')
  if (found === undefined) throw InvalidRequest(`env.${printable(Object.keys(env)[0] ?? '')}: no credential of instance ${instance.name} takes its value from this variable; others cannot be changed`)
  const { egress, policy } = found
  const next = egress.rotate(policy, env)
  await savePolicy(instance, next)
  try {
    await egress.replace(instance.id, next)
  } catch (error) {
    await savePolicy(instance, policy).catch((failure: unknown) => { context.log.error({ err: failure, instance: instance.id }, 'the values that credentials had before could not be stored again') })
    context.behind.leave('policies', bringPolicy(context, instance))
    throw error
  }
}

async function savePolicy (instance: LiveInstance, egress: EgressSpec): Promise<void> {
  await instance.save({ spec: { ...instance.record.spec, egress } })
}

/** Has the proxy enforce what is stored, once it answers: nobody knows what it enforces now. Never rejects. */
async function bringPolicy (context: Context, instance: LiveInstance): Promise<void> {
  const { signal } = context.closing
  const { machine } = instance
  for (let retryMs = FIRST_RETRY_MS; !signal.aborted; retryMs = Math.min(retryMs * 2, LAST_RETRY_MS)) {
    try {
      await context.locks.hold(instance.id, async () => {
        const found = requirePolicy(context, instance.record, 'env')
        // Another VM begins with what is stored.
        if (signal.aborted || found === undefined || machine === undefined || instance.machine !== machine) return
        await found.egress.replace(instance.id, found.policy)
      })
      return
    } catch (error) {
      context.log.warn({ err: error, instance: instance.id }, 'the egress proxy does not take a policy; it is tried again')
    }
    await pause(retryMs, signal)
  }
}
