// The rules for credentials, apart from their values. The proxy's own functions check headers and hosts.
import { InvalidRequest } from '../../../core/errors/common.ts'
import { parsePattern, type HostPattern } from '../../../proxy/contract/host-pattern.ts'
import { HeaderClaims } from '../../../proxy/contract/header-claims.ts'
import { headerNameFault, isFieldValue } from '../../../proxy/contract/header-rules.ts'
import type { CredentialRequest } from '../../instances/egress/contract.ts'
import { isVariable, printable } from './text.ts'

const MAX_FORMAT = 4096
const MAX_HOSTS = 256
const MAX_RULES = 256
const MAX_PATTERN = 260

/** One rule with its place in the request. */
interface Rule {
  /** `credentials.NAME.inject[0]` */
  readonly place: string
  readonly header: string
  /** absent: every host */
  readonly patterns: readonly HostPattern[] | undefined
}

type Inject = CredentialRequest['inject'][number]

/** @throws InvalidRequest naming the field and its rule */
export function checkCredentials (credentials: Readonly<Record<string, CredentialRequest>>): void {
  const rules = Object.entries(credentials).flatMap(([name, credential]) => checkCredential(name, credential))
  if (rules.length > MAX_RULES) throw InvalidRequest(`credentials: have ${rules.length} entries of inject together; at most ${MAX_RULES} are allowed`)
  checkClashes(rules)
}

function checkCredential (name: string, { source, inject }: CredentialRequest): Rule[] {
  if (!isVariable(name)) throw InvalidRequest(`credentials: "${printable(name)}" is no name for a variable; use letters, digits and underscores, not starting with a digit`)
  const place = `credentials.${name}`
  if (!isVariable(source.env)) throw InvalidRequest(`${place}.source.env: "${printable(source.env)}" is no name for a variable`)
  if (inject.length === 0) throw InvalidRequest(`${place}.inject: needs at least one entry`)
  return inject.map((rule, index) => checkInject(`${place}.inject[${index}]`, rule))
}

function checkInject (place: string, { as: { header, format }, hosts }: Inject): Rule {
  const fault = headerNameFault(header)
  if (fault !== undefined) throw InvalidRequest(`${place}.as.header: "${printable(header)}" ${fault}`)
  if (format.length > MAX_FORMAT) throw InvalidRequest(`${place}.as.format: has ${format.length} characters; at most ${MAX_FORMAT} are allowed`)
  if (!format.includes('${value}')) throw InvalidRequest(`${place}.as.format: must contain \${value}`)
  if (!isFieldValue(format)) throw InvalidRequest(`${place}.as.format: holds a character that a header cannot hold, or begins or ends with white space`)
  return { place, header, patterns: hosts === undefined ? undefined : checkHosts(`${place}.hosts`, hosts) }
}

function checkHosts (place: string, hosts: readonly string[]): HostPattern[] {
  if (hosts.length === 0) throw InvalidRequest(`${place}: must name at least one host; leave it out for every host`)
  if (hosts.length > MAX_HOSTS) throw InvalidRequest(`${place}: has ${hosts.length} entries; at most ${MAX_HOSTS} are allowed`)
  return hosts.map((host, index) => {
    const pattern = host.length > MAX_PATTERN ? undefined : parsePattern(host)
    if (pattern === undefined) {
      throw InvalidRequest(`${place}[${index}]: "${printable(host)}" is neither a host name nor *. before a name of at least two labels, such as *.example.com`)
    }
    return pattern
  })
}

/** A more precise rule wins over a less precise one. Between equal ones the order would decide, and one of the two secrets would go where it does not belong. */
function checkClashes (rules: readonly Rule[]): void {
  const claims = new HeaderClaims<Rule>()
  for (const rule of rules) {
    const other = claims.claim(rule.header, rule.patterns, rule)
    if (other !== undefined) throw InvalidRequest(`${rule.place}.as.header: ${other.place}.as.header sets the same header, "${printable(rule.header)}", for the same host`)
  }
}
