// Says what a policy would do with a request, by the proxy's own rules and before any VM has the policy. No value of a credential is needed for it.
import type { Secrets } from '../../../core/contracts/services.ts'
import { InvalidRequest } from '../../../core/errors/common.ts'
import { REASONS, type ReasonCode } from '../../../proxy/contract/reasons.ts'
import type { OwnRanges } from '../../../proxy/contract/control.ts'
import { parseAuthority, type CanonicalHost } from '../../../proxy/contract/canonical-host.ts'
import { compileRules, mostPrecise } from '../../../proxy/contract/precise-rules.ts'
import { createVet, isMetadataName } from '../../../proxy/contract/vet.ts'
import type { EgressTrial, EgressVerdict } from '../../instances/egress/contract.ts'
import type { EgressConfig } from '../manifest.ts'
import { checkCredentials } from '../validate/credentials.ts'
import { composeVm } from './compose.ts'

export interface TrialPlace {
  readonly secrets: Secrets
  readonly ports: EgressConfig['ports']
  /** of the proxy's own configuration */
  readonly ranges: OwnRanges
  /** further ranges where no guest may send */
  readonly denied: readonly string[]
}

interface Target { readonly host: CanonicalHost, readonly protocol: 'http' | 'https', readonly port: number }

/** @throws InvalidRequest naming the field */
export function tryPolicy ({ mode, credentials, url }: EgressTrial, { secrets, ports, ranges, denied }: TrialPlace): EgressVerdict {
  checkCredentials(credentials)
  const { host, protocol, port } = targetOf(url)
  const about = { host: host.name, port, protocol, needs_address: host.family === 0 }
  const refused = (reason: string, message: string): EgressVerdict => ({ ...about, decision: 'refuse', reason, message, injected: [], headers: [] })
  if (!ports[protocol].includes(port)) {
    return mode === 'all'
      ? refused('port_not_mediated', `Guests reach only the ports ${ports[protocol].join(', ')} by ${protocol}.`)
      : { ...about, decision: 'direct', injected: [], headers: [] }
  }
  const fault = faultOf(host, ranges, denied)
  if (fault !== undefined) return refused(fault, REASONS[fault].message)
  if (protocol === 'http') return { ...about, decision: 'allow', injected: [], headers: [] }
  const { rules } = composeVm({ instanceId: '', address: '', epoch: '', spec: { mode, credentials, sealed: {} } }, secrets, () => {})
  const held = mostPrecise(compileRules(rules), host.name)
  return { ...about, decision: 'allow', injected: [...new Set(held.map(({ credential }) => credential))], headers: held.map(({ header }) => header) }
}

function targetOf (text: string): Target {
  const [, protocol, authority = ''] = /^(https?):\/\/([^/?#]*)/.exec(text) ?? []
  if (protocol !== 'http' && protocol !== 'https') throw InvalidRequest('url: must begin with http:// or https://')
  const host = parseAuthority(authority)
  if (host === undefined) throw InvalidRequest('url: must name a host, and perhaps a port, as a request of a guest would')
  return { host, protocol, port: host.port ?? (protocol === 'http' ? 80 : 443) }
}

function faultOf (host: CanonicalHost, { allowPrivate, deny }: OwnRanges, denied: readonly string[]): ReasonCode | undefined {
  if (host.family === 0) return isMetadataName(host.name) ? 'metadata_refused' : undefined
  return createVet({ allow: allowPrivate, deny: [...deny, ...denied] }, () => false)(host.name)
}
