// Ingresses as JSON. Values of header authentication are never shown.
import type { IngressRecord } from './record.ts'
import type { IngressView } from './schemas.ts'

const HIDDEN = '********'

/** @param problem why it is not served */
export function ingressView ({ id, name, createdAt, tags, rules }: IngressRecord, problem: string | undefined): IngressView {
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
    ...problem === undefined ? {} : { reason: problem }
  }
}
