// Decides where one request goes, or why it is refused.
import { createHash, timingSafeEqual } from 'node:crypto'
import type { RuleAuth } from '../record.ts'
import { captureName } from '../rules/hostname.ts'
import type { RuleTable } from '../rules/table.ts'
import { askedPath, isAmbiguous } from './path.ts'

export interface Request {
  readonly port: number
  readonly host: string
  readonly uri: string
  readonly header: (name: string) => string | undefined
  /** address */
  readonly client: string
  /** aborts when nobody waits for the answer any more */
  readonly signal: AbortSignal
}

export type Target =
  | { readonly instanceId: string, readonly ip: string }
  | { readonly instanceId?: string, readonly problem: string }

export type Decision =
  | { readonly kind: 'forward', readonly instanceId: string, readonly ingressId: string, readonly target: string, readonly keepMs: number }
  | { readonly kind: 'redirect', readonly location: string }
  | { readonly kind: 'refuse', readonly status: 400 | 403 | 404 | 503, readonly reason: string, readonly instanceId?: string, readonly ingressId?: string }

export interface DecisionSources {
  readonly table: RuleTable
  /** by id or exact name; may take a while when the target is still waking up */
  readonly targetOf: (ref: string, port: number) => Promise<Target>
  /** the required value of a rule's header; undefined when it cannot be opened */
  readonly secretOf: (ingressId: string, auth: RuleAuth) => string | undefined
}

/** How long nginx may reuse an answer. */
const KEEP_MS = 1000

export async function decide ({ table, targetOf, secretOf }: DecisionSources, { port, host, uri, header }: Request): Promise<Decision> {
  const asked = askedPath(uri)
  const found = table.find({ port, host, path: asked.path })
  if (found === undefined) return { kind: 'refuse', status: 404, reason: 'There is nothing at this address.' }
  const { ingress: { id: ingressId }, rule, captures, redirect, hasPaths, byFirstSegment } = found
  if (hasPaths && isAmbiguous(asked)) return { kind: 'refuse', status: 400, reason: 'This path can be read in more than one way.', ingressId }
  if (redirect) return { kind: 'redirect', location: `https://${host}${rule.port === 443 ? '' : `:${rule.port}`}${uri}` }
  if (rule.auth !== undefined) {
    const secret = secretOf(ingressId, rule.auth)
    if (secret === undefined || !isSame(secret, header(rule.auth.header))) return { kind: 'refuse', status: 403, reason: `The header ${rule.auth.header} is missing or wrong.`, ingressId }
  }
  const capture = captureName(rule.instance)
  const target = await targetOf(capture === undefined ? rule.instance : captures.get(capture) ?? '', rule.targetPort)
  if ('problem' in target) return { kind: 'refuse', status: 503, reason: target.problem, ingressId, ...target.instanceId === undefined ? {} : { instanceId: target.instanceId } }
  // nginx caches by host and first segment of the path: the answer must be valid for every request with the same ones.
  const keepMs = rule.auth === undefined && byFirstSegment && (asked.plain || !hasPaths) ? KEEP_MS : 0
  return { kind: 'forward', ingressId, instanceId: target.instanceId, target: `${target.ip}:${rule.targetPort}`, keepMs }
}

function isSame (secret: string, given: string | undefined): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
  return given !== undefined && timingSafeEqual(digest(secret), digest(given))
}
