// Gives credentials of an instance other values, in every state of the instance. The row is changed first, so that after a crash the next start of the
// server takes the policy from there. The answer is sent only once no request carries an older value.
import { InvalidRequest } from '../../../core/errors/common.ts'
import type { EgressSpec } from '../egress/contract.ts'
import type { Context } from '../context.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { requirePolicy } from '../parts/policy.ts'
import { doLater } from '../parts/later.ts'
import type { InstanceRecord } from '../model/record.ts'
import { checkEnv, printable } from '../validate/env.ts'

/** The policy of a row with other values for its credentials. @throws invalid_request naming the variable, PluginDisabled */
export function rotated (context: Context, { name, spec }: Pick<InstanceRecord, 'name' | 'spec'>, env: Readonly<Record<string, string>>): EgressSpec {
  checkEnv('env', env)
  const found = requirePolicy(context, { spec }, 'env')
  if (found === undefined) throw InvalidRequest(`env.${printable(Object.keys(env)[0] ?? '')}: no credential of instance ${name} takes its value from this variable; others cannot be changed`)
  return found.egress.rotate(found.policy, env)
}

/**
 * Has the proxy take the policy that was just stored. Needs the lock of the instance. When this rejects, row and proxy have the former policy, or will have it as soon as the proxy answers.
 * Without a VM the proxy has no policy of the instance, and the next VM begins with the stored one.
 * @param putBack stores the former policy
 */
export async function replacePolicy (context: Context, instance: LiveInstance, putBack: () => Promise<void>): Promise<void> {
  const found = requirePolicy(context, instance.record, 'env')
  if (found === undefined) return
  try {
    await found.egress.replace(instance.id, found.policy)
  } catch (error) {
    await putBack().catch((failure: unknown) => { context.log.error({ err: failure, instance: instance.id }, 'what an instance had before an update could not be stored again') })
    bringPolicyLater(context, instance)
    throw error
  }
}

/** Has the proxy enforce the stored policy once it answers, since it is unknown what it enforces now. Nobody waits for that: a caller who waits for work that gives room back may hold the lock. */
function bringPolicyLater (context: Context, instance: LiveInstance): void {
  doLater(context, 'policy', instance.id, async () => {
    const found = requirePolicy(context, instance.record, 'env')
    // Without a VM there is no policy, and the next VM begins with the stored one.
    if (found === undefined || instance.deleted || instance.session === undefined || context.closing.signal.aborted) return
    await found.egress.replace(instance.id, found.policy).catch((error: unknown) => {
      context.log.warn({ err: error, instance: instance.id }, 'the egress proxy does not take a policy; it is tried again')
      throw error
    })
  })
}
