// Checks the rules of a request, and makes the stored form of them.
import { createHash } from 'node:crypto'
import { InvalidRequest } from '../../../core/errors/common.ts'
import { RESERVED_LABELS } from '../certificates/names.ts'
import type { IngressRule } from '../record.ts'
import type { RuleRequest } from '../schemas.ts'
import { captureName, capturesOf, hostname, isOpen, shapeOf } from './hostname.ts'

/** The ports on which this server listens; a rule without a port gets the first of its kind. */
export interface Ports { readonly http: readonly number[], readonly https: readonly number[] }

/** A rule whose secret is not sealed yet. */
export interface CheckedRule extends Omit<IngressRule, 'auth'> {
  readonly auth?: { readonly header: string, readonly value: string }
}

/** Not all that HTTP allows in names: nginx drops headers with other characters, and then every request would be refused. */
const HEADER = /^[a-z0-9-]+$/
/** Headers of the transport, browsers and proxies: a rule's secret may not use any of these. */
const RESERVED = new Set([
  'accept', 'accept-encoding', 'authorization', 'connection', 'content-encoding', 'content-length', 'content-type', 'cookie', 'date', 'expect', 'forwarded', 'host', 'http2-settings', 'keep-alive', 'origin',
  'referer', 'set-cookie', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'user-agent', 'via'
])
const RESERVED_STARTS = ['proxy-', 'sec-', 'x-forwarded-', 'x-real-', 'x-berth-', 'grpc-', ':']
const SEGMENT = /^[A-Za-z0-9._~-]{1,128}$/

export function checkRules (requests: readonly RuleRequest[], ports: Ports): CheckedRule[] {
  const rules = requests.map((request, index) => checkRule(request, `rules[${index}]`, ports))
  const seen = new Map<string, number>()
  for (const [index, rule] of rules.entries()) {
    for (const { claim, text } of claimsOf(rule, ports)) {
      const before = seen.get(claim)
      if (before !== undefined) throw InvalidRequest(`rules[${index}].match: takes ${text}, as rules[${before}] does`)
      seen.set(claim, index)
    }
  }
  return rules
}

function checkRule ({ match, target, tls = false, redirect_http: redirectHttp = false, request_header_auth: auth }: RuleRequest, place: string, ports: Ports): CheckedRule {
  const name = hostname(`${place}.match.hostname`, match.hostname)
  const port = portOf(match.port, tls, `${place}.match.port`, ports)
  if (tls && name.split('.').slice(1).some(isOpen)) throw InvalidRequest(`${place}.match.hostname: with tls only the first label may be open, since certificates know no other`)
  if (tls && RESERVED_LABELS.has(name.split('.')[0] ?? '')) throw InvalidRequest(`${place}.match.hostname: with tls the first label may not be "${name.split('.')[0] ?? ''}", under which the certificate of *.${name.slice(name.indexOf('.') + 1)} is kept`)
  const path = pathOf(match.path ?? '/', `${place}.match.path`)
  if (redirectHttp && !tls) throw InvalidRequest(`${place}.redirect_http: needs tls`)
  if (redirectHttp && ports.http.length === 0) throw InvalidRequest(`${place}.redirect_http: this server takes no plain HTTP (plugins.ingress.config.listen.http)`)
  return {
    hostname: name, port, path, tls, redirectHttp,
    instance: targetOf(target.instance, name, `${place}.target.instance`),
    targetPort: target.port,
    ...auth === undefined ? {} : { auth: authOf(auth, `${place}.request_header_auth`) }
  }
}

function portOf (asked: number | undefined, tls: boolean, field: string, { http, https }: Ports): number {
  const [mine, kind, key] = tls ? [https, 'TLS', 'https'] as const : [http, 'plain HTTP', 'http'] as const
  const port = asked ?? mine[0]
  if (port !== undefined && mine.includes(port)) return port
  const has = mine.length === 0 ? `no port for ${kind}` : `${kind} on ${mine.join(', ')}`
  throw InvalidRequest(`${field}: this server has ${has} (plugins.ingress.config.listen.${key})`)
}

function pathOf (text: string, field: string): string {
  if (text === '/') return text
  const [first, ...segments] = (text.endsWith('/') ? text.slice(0, -1) : text).split('/')
  if (first !== '' || segments.length > 16 || segments.some((segment) => !SEGMENT.test(segment) || segment === '.' || segment === '..')) {
    throw InvalidRequest(`${field}: must begin with a slash and have at most 16 segments of letters, digits, dots, dashes, tildes and underscores`)
  }
  return `/${segments.join('/')}`
}

function targetOf (text: string, name: string, field: string): string {
  const captures = capturesOf(name)
  const capture = captureName(text)
  if (capture === undefined && (text.includes('{') || text.includes('}'))) throw InvalidRequest(`${field}: must be an instance, or one capture such as {instance}`)
  if (capture !== undefined && !captures.includes(capture)) throw InvalidRequest(`${field}: the host name has no {${capture}}`)
  if (capture === undefined && captures.length > 0) throw InvalidRequest(`${field}: must be a capture of the host name, as {${captures[0] ?? ''}}`)
  return text
}

function authOf ({ header, value }: { readonly header: string, readonly value: string }, place: string): { header: string, value: string } {
  const name = header.toLowerCase()
  if (!HEADER.test(name)) throw InvalidRequest(`${place}.header: must be a header's name of letters, digits and dashes`)
  if (RESERVED.has(name) || RESERVED_STARTS.some((start) => name.startsWith(start))) throw InvalidRequest(`${place}.header: ${name} has a meaning of its own; take another name, such as X-Preview-Key`)
  return { header: name, value }
}

/** What a rule takes exclusively: its host and path, and those for redirecting plain HTTP. */
export function claimsOf (rule: Pick<IngressRule, 'hostname' | 'port' | 'path' | 'redirectHttp'>, { http }: Ports): { readonly claim: string, readonly port: number, readonly text: string }[] {
  const ports = [rule.port, ...rule.redirectHttp ? http.slice(0, 1) : []]
  return ports.map((port) => {
    const text = `${shapeOf(rule.hostname)}${rule.path} on port ${port}`
    return { port, text, claim: createHash('sha256').update(`${port} ${shapeOf(rule.hostname)} ${rule.path}`).digest('hex') }
  })
}
