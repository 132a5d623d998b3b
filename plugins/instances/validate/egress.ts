// The policy of mediated egress. Only the plugin egress judges its content.
import { InvalidRequest } from '../../../core/errors/common.ts'
import type { EgressService } from '../egress/contract.ts'
import type { InstanceSpec, NetworkSpec } from '../model/record.ts'
import type { InstanceRequest } from '../model/request.ts'

/** The variables that the guest sees, and the policy if there is to be one. @throws InvalidRequest */
export function policyOf ({ spec: { env }, credentials, network: { mediated } }: InstanceRequest, network: NetworkSpec, egress: EgressService | undefined): Pick<InstanceSpec, 'env' | 'egress'> {
  // Without the plugin the request was refused before this.
  if (egress === undefined || mediated === undefined) return { env }
  if (!network.enabled) throw InvalidRequest(`${Object.keys(credentials).length > 0 ? 'credentials: need' : 'network.egress.enabled: needs'} network.enabled: true`)
  const spec = egress.prepare({ mode: mediated, credentials, env })
  return { env: egress.guestEnvironment(spec, env), egress: spec }
}
