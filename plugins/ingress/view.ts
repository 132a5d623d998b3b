// Ingresses as JSON. Values of header authentication are never shown.
import type { CertificateState } from './certificates/certificates.ts'
import type { IngressRecord } from './record.ts'
import type { CertificateView, IngressView } from './schemas.ts'

const HIDDEN = '********'

/** @param problem why it is not served */
export function ingressView ({ id, name, createdAt, tags, rules }: IngressRecord, problem: string | undefined, certificates: readonly CertificateState[]): IngressView {
  return {
    id,
    name,
    created_at: new Date(createdAt).toISOString(),
    ...Object.keys(tags).length === 0 ? {} : { tags: { ...tags } },
    rules: rules.map(({ hostname, port, path, instance, targetPort, tls, redirectHttp, auth }) => ({
      match: { hostname, port, ...path === '/' ? {} : { path } },
      target: { instance, port: targetPort },
      tls,
      redirect_http: redirectHttp,
      ...auth === undefined ? {} : { request_header_auth: { header: auth.header, value: HIDDEN } }
    })),
    served: problem === undefined,
    ...problem === undefined ? {} : { reason: problem },
    ...certificates.length === 0 ? {} : { certificates: certificates.map(certificateView) }
  }
}

function certificateView ({ host, source, installed, problem, nextAt }: CertificateState): CertificateView {
  const time = (at: number): string => new Date(at).toISOString()
  return {
    host,
    source,
    issuer: installed?.issuer ?? null,
    not_before: installed === undefined ? null : time(installed.startsAt),
    not_after: installed === undefined ? null : time(installed.endsAt),
    problem: problem ?? null,
    next_attempt_at: nextAt === undefined ? null : time(nextAt)
  }
}
