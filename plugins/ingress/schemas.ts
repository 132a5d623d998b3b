// The shapes of requests and answers about ingresses.
import { Type, type Static } from 'typebox'
import { listQuery, NameQuery, TagsQuery } from '../../core/http/list.ts'
import { nullable, oneOf, ResourceName, Tags, Timestamp } from '../../core/http/schemas.ts'

const closed = { additionalProperties: false } as const
const Port = (description: string) => Type.Integer({ minimum: 1, maximum: 65_535, description })

export const RuleRequest = Type.Object({
  match: Type.Object({
    hostname: Type.String({ maxLength: 253, description: 'app.example.com, *.example.com for one more label, or {instance}.example.com, whose captures the target may name' }),
    port: Type.Optional(Port('Port of this server that it is asked on; without it the first one for plain HTTP, or for TLS')),
    path: Type.Optional(Type.String({ maxLength: 1024, description: 'Only this path and what is below it; the longest that fits counts' }))
  }, closed),
  target: Type.Object({
    instance: Type.String({ minLength: 1, maxLength: 191, description: 'Id or name of an instance, or a capture of the host name' }),
    port: Port('Port that its program listens on')
  }, closed),
  tls: Type.Optional(Type.Boolean({ description: 'Whether it is served with TLS' })),
  redirect_http: Type.Optional(Type.Boolean({ description: 'Whether plain HTTP is sent on to TLS' })),
  request_header_auth: Type.Optional(Type.Object({
    header: Type.String({ minLength: 1, maxLength: 64, description: 'Header that requests must have; none that has a meaning already' }),
    value: Type.String({ minLength: 32, maxLength: 256, pattern: '^[\\x21-\\x7e]*$', rule: 'must have 32 to 256 printable characters and no space', description: 'What it must be; kept sealed, and never shown again' })
  }, closed))
}, closed)
export type RuleRequest = Static<typeof RuleRequest>

export const CreateIngress = Type.Object({
  name: ResourceName,
  rules: Type.Array(RuleRequest, { minItems: 1, maxItems: 32 }),
  tags: Type.Optional(Tags)
}, { ...closed, $id: 'CreateIngress' })
export type CreateIngress = Static<typeof CreateIngress>

export const CertificateView = Type.Object({
  host: Type.String({ description: 'What it is for: a host, or *. and a domain' }),
  source: oneOf(['files', 'acme', 'own'], { description: 'files: the operator\'s own; acme: an authority that is asked for it; own: this server\'s authority' }),
  issuer: nullable(Type.String({ description: 'Of the one that is served' })),
  not_before: nullable(Timestamp),
  not_after: nullable(Timestamp),
  problem: nullable(Type.String({ description: 'Why a new one could not be had' })),
  next_attempt_at: nullable(Timestamp)
}, closed)
export type CertificateView = Static<typeof CertificateView>

export const IngressView = Type.Object({
  id: Type.String(),
  name: Type.String(),
  created_at: Timestamp,
  tags: Type.Optional(Type.Record(Type.String(), Type.String())),
  rules: Type.Array(Type.Object({
    match: Type.Object({ hostname: Type.String(), port: Type.Integer(), path: Type.Optional(Type.String()) }, closed),
    target: Type.Object({ instance: Type.String(), port: Type.Integer() }, closed),
    tls: Type.Boolean(),
    redirect_http: Type.Boolean(),
    request_header_auth: Type.Optional(Type.Object({ header: Type.String(), value: Type.String({ description: 'Always ********' }) }, closed))
  }, closed)),
  served: Type.Boolean({ description: 'Whether requests reach a program now, by all of its rules' }),
  reason: Type.Optional(Type.String({ description: 'Why not' })),
  certificates: Type.Optional(Type.Array(CertificateView, { description: 'Of the hosts with TLS' }))
}, { ...closed, $id: 'Ingress' })
export type IngressView = Static<typeof IngressView>

export const IngressList = Type.Array(IngressView)
export const ListIngressesQuery = Type.Object({ ...listQuery(['created_at', 'name'], 'created_at'), ...TagsQuery, ...NameQuery }, closed)

/** `:id` is an id, a name, or the beginning of an id. */
export const IngressRef = Type.Object({ id: Type.String({ minLength: 1, maxLength: 191 }) }, closed)

export const RequestEntry = Type.Object({
  time: Timestamp,
  client: Type.String({ description: 'Address of the client' }),
  protocol: Type.String(),
  tls: Type.Boolean(),
  method: Type.String(),
  host: Type.String(),
  path: Type.String({ description: 'Without what follows a question mark, which may be secret' }),
  status: Type.Integer(),
  bytes_in: Type.Integer(),
  bytes_out: Type.Integer(),
  duration_ms: Type.Integer(),
  ingress_id: nullable(Type.String())
}, closed)
export type RequestEntry = Static<typeof RequestEntry>

export const RequestLog = Type.Object({ entries: Type.Array(RequestEntry) }, { ...closed, $id: 'IngressLog' })
export const RequestLogQuery = Type.Object({ limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, description: 'The newest so many, oldest first; 100 without it' })) }, closed)
