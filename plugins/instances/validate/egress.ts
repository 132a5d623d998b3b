// The policy of a mediated way out. What one may say is the plugin egress's to judge.
import { InvalidRequest } from '../../../core/errors/common.ts'
import type { EgressService } from '../egress/contract.ts'
import type { InstanceSpec, NetworkSpec } from '../model/record.ts'
import type { InstanceRequest } from '../model/request.ts'

/** What the guest sees of the request's variables, and its policy if it is to have one. @throws InvalidRequest */
export function policyOf ({ spec: { env }, credentials, network: { mediated } }: InstanceRequest, network: NetworkSpec, egress: EgressService | undefined): Pick<InstanceSpec, 'env' | 'egress'> {
  // Without the plugin it has been refused by now.
  if (egress === undefined || mediated === undefined) return { env }
  if (!network.enabled) throw InvalidRequest(`${Object.keys(credentials).length > 0 ? 'credentials: need' : 'network.egress.enabled: needs'} network.enabled: true`)
  const spec = egress.prepare({ mode: mediated, credentials, env })
  return { env: egress.guestEnvironment(spec, env), egress: spec }
}
