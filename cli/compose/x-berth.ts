// `x-berth` of a service: the features of Berth that the Compose Specification lacks.
import { durationOf } from './health.ts'
import type { Place } from './place.ts'
import type { Surroundings } from './surroundings.ts'

const X_BERTH_FIELDS = ['egress', 'credentials', 'standby', 'snapshot'] as const

export interface Extras {
  readonly snapshot?: string
  /** fields of the API */
  readonly body: Readonly<Record<string, unknown>>
  readonly secrets: Readonly<Record<string, string>>
}

export function extrasOf (place: Place | undefined, around: Surroundings): Extras {
  const fields = place?.fields(X_BERTH_FIELDS)
  const credentials = fields?.get('credentials')?.entries() ?? []
  const secrets: Record<string, string> = {}
  const written = credentials.map(([name, credential]) => [name, credentialOf(credential, around, secrets)] as const)
  const mode = fields?.get('egress')?.oneOf(['all', 'http_https_only', 'none']) ?? (written.length === 0 ? undefined : 'all')
  if (mode === 'none' && written.length > 0) throw (fields?.get('egress') as Place).refusal('credentials need the egress proxy')
  const snapshot = fields?.get('snapshot')?.text()
  const standby = fields?.get('standby')
  return {
    ...snapshot === undefined ? {} : { snapshot },
    secrets,
    body: {
      ...mode === undefined ? {} : { network: mode === 'none' ? { egress: { enabled: false } } : { egress: { enabled: true, enforcement: { mode } } } },
      ...standby === undefined ? {} : { auto_standby: { enabled: true, ...durationOf('idle_timeout', standby) } },
      ...written.length === 0 ? {} : { credentials: Object.fromEntries(written) }
    }
  }
}

/** The value is that of a variable of this shell, so that it is in no file. */
function credentialOf (place: Place, { variables }: Surroundings, secrets: Record<string, string>): object {
  const fields = place.fields(['env', 'hosts', 'header', 'format'])
  const [env, header] = [fields.get('env'), fields.get('header')]
  if (env === undefined || header === undefined) throw place.refusal('env and header are needed')
  const source = env.text()
  const value = variables.get(source)
  if (value === undefined || value === '') throw env.refusal(`the variable ${source} is not set here`)
  secrets[source] = value
  const format = fields.get('format')?.text() ?? (header.text().toLowerCase() === 'authorization' ? 'Bearer ${value}' : '${value}')
  const hosts = fields.get('hosts')?.items().map((host) => host.text())
  return { source: { env: source }, inject: [{ ...hosts === undefined ? {} : { hosts }, as: { header: header.text(), format } }] }
}
