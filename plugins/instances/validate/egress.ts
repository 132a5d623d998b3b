// Rules of a mediated way out: where it may be asked for. What a policy may say is the plugin egress's to judge.
import { InvalidRequest } from '../../../core/errors/common.ts'
import type { EgressService } from '../egress/contract.ts'
import type { InstanceSpec, NetworkSpec } from '../record.ts'
import type { CreateInstance } from '../schemas.ts'

/** Whether a request asks for it. @throws InvalidRequest when it says something about a way out that it does not ask for */
export function wantsEgress ({ network, credentials }: CreateInstance): boolean {
  const { enabled, enforcement } = network?.egress ?? {}
  // Whoever names rules and forgets the switch must not get a machine without rules.
  if (enabled === undefined && enforcement !== undefined) throw InvalidRequest('network.egress.enabled: required with network.egress.enforcement; false stands for a direct way out')
  if (enabled !== true && Object.keys(credentials ?? {}).length > 0) throw InvalidRequest('credentials: need network.egress.enabled: true')
  return enabled === true
}

/** What the guest sees of the request's variables, and its policy if it is to have one. @throws InvalidRequest */
export function policyOf (body: CreateInstance, network: NetworkSpec, egress: EgressService | undefined): Pick<InstanceSpec, 'env' | 'egress'> {
  const { env = {}, credentials = {} } = body
  // Without the plugin it has been refused by now.
  if (egress === undefined || !wantsEgress(body)) return { env }
  if (!network.enabled) throw InvalidRequest(`${Object.keys(credentials).length > 0 ? 'credentials: need' : 'network.egress.enabled: needs'} network.enabled: true`)
  const spec = egress.prepare({ mode: body.network?.egress?.enforcement?.mode ?? 'all', credentials, env })
  return { env: egress.guestEnvironment(spec, env), egress: spec }
}
