// Rules of brokered credentials. The values themselves never appear in a message.
import { InvalidRequest } from '../../../core/errors/common.ts'
import type { CreateInstance } from '../schemas.ts'
import { isEnvName, printable } from './env.ts'

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const HOST = /^(?:\*\.)?(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i

/** @throws InvalidRequest naming the entry and its rule */
export function checkCredentials (body: CreateInstance): void {
  const entries = Object.entries(body.credentials ?? {})
  if (entries.length === 0) return
  for (const [name, credential] of entries) {
    if (!isEnvName(name)) throw InvalidRequest(`credentials: "${printable(name)}" is no name for a variable`)
    const place = `credentials.${name}`
    const { env } = credential.source
    if (body.env === undefined || !Object.hasOwn(body.env, env) || body.env[env] === '') {
      throw InvalidRequest(`${place}.source.env: env has no variable "${printable(env)}" with a value`)
    }
    if (credential.inject.length === 0) throw InvalidRequest(`${place}.inject: needs at least one entry`)
    for (const [index, rule] of credential.inject.entries()) checkInject(`${place}.inject[${index}]`, rule)
  }
  if (body.network?.enabled === false) throw InvalidRequest('credentials: need network.enabled: true')
  if (body.network?.egress?.enabled !== true) throw InvalidRequest('credentials: need network.egress.enabled: true')
}

type Inject = NonNullable<CreateInstance['credentials']>[string]['inject'][number]

function checkInject (place: string, { as, hosts }: Inject): void {
  if (!HEADER_NAME.test(as.header)) throw InvalidRequest(`${place}.as.header: "${printable(as.header)}" is no header name`)
  if (!as.format.includes('${value}')) throw InvalidRequest(`${place}.as.format: must contain \${value}`)
  if (/\p{Cc}/u.test(as.format)) throw InvalidRequest(`${place}.as.format: must not contain control characters`)
  for (const [index, host] of (hosts ?? []).entries()) {
    if (!HOST.test(host)) throw InvalidRequest(`${place}.hosts[${index}]: "${printable(host)}" is neither a host name nor a pattern such as *.example.com`)
  }
}
