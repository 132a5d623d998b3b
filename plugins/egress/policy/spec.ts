// Makes the stored form of a policy from a request, changes its values, and derives the guest's environment from it.
import type { Secrets } from '../../../core/contracts/services.ts'
import { InvalidRequest } from '../../../core/errors/common.ts'
import type { EgressRequest, EgressService, EgressSpec } from '../../instances/egress/contract.ts'
import { composeVm } from './compose.ts'
import { purposeOf } from './purpose.ts'
import { checkCredentials } from '../validate/credentials.ts'
import { mockOf, printable } from '../validate/text.ts'
import { checkValue, sourcesOf } from '../validate/values.ts'

type Variables = Readonly<Record<string, string>>

/** 64 MiB for a whole revision, divided by 1,023 VMs: when there are more of them, not all can have the largest */
const MAX_POLICY_BYTES = 60_000

/** @throws InvalidRequest naming the field's path, never a value */
export function prepareSpec ({ mode, credentials, env }: EgressRequest, secrets: Secrets): EgressSpec {
  checkCredentials(credentials)
  const sealed = sourcesOf(credentials).map((name): [string, string] => {
    const value = Object.hasOwn(env, name) ? env[name] : undefined
    if (value === undefined || value === '') {
      const [credential = ''] = Object.entries(credentials).find(([, { source }]) => source.env === name) ?? []
      throw InvalidRequest(`credentials.${credential}.source.env: env has no variable "${printable(name)}" with a value`)
    }
    checkValue(name, value, credentials)
    return [name, secrets.seal(purposeOf(name), value)]
  })
  const spec = { mode, credentials: structuredClone(credentials), sealed: Object.fromEntries(sealed) }
  checkSize('credentials', spec, secrets)
  return spec
}

/** What the guest sees in place of the request's variables. */
export function guestEnvironment ({ credentials, sealed }: EgressSpec, env: Variables): Variables {
  const open = Object.entries(env).filter(([name]) => !Object.hasOwn(sealed, name))
  const mocks = Object.keys(credentials).map((name): [string, string] => [name, mockOf(name)])
  return Object.fromEntries([...open, ...mocks])
}

/** @throws InvalidRequest naming `env.<NAME>` */
export function divideEnvironment ({ credentials, sealed }: EgressSpec, env: Variables): ReturnType<EgressService['divide']> {
  const values: Record<string, string> = {}
  const variables: Record<string, string> = {}
  for (const [name, value] of Object.entries(env)) {
    if (Object.hasOwn(sealed, name)) values[name] = value
    else if (Object.hasOwn(credentials, name)) throw InvalidRequest(`env.${printable(name)}: the guest has a mock of this credential; its value comes in ${printable(credentials[name]?.source.env ?? '')}`)
    else variables[name] = value
  }
  return { values, variables }
}

/** @throws InvalidRequest naming `env.<NAME>` */
export function rotateSpec (spec: EgressSpec, env: Variables, secrets: Secrets): EgressSpec {
  const changed = Object.entries(env).map(([name, value]): [string, string] => {
    if (!Object.hasOwn(spec.sealed, name)) throw InvalidRequest(`env.${printable(name)}: is not the source of a credential; only those can be changed`)
    checkValue(name, value, spec.credentials)
    return [name, secrets.seal(purposeOf(name), value)]
  })
  const next = { ...spec, sealed: Object.fromEntries([...Object.entries(spec.sealed), ...changed]) }
  checkSize('env', next, secrets)
  return next
}

/** All policies of a host go to the proxy in one message, which must have room for each VM's. */
function checkSize (place: string, spec: EgressSpec, secrets: Secrets): void {
  // A value from before that can no longer be opened is handled elsewhere.
  const { rules } = composeVm({ instanceId: '', address: '', epoch: '', spec }, secrets, () => {})
  const bytes = Buffer.byteLength(JSON.stringify(rules))
  if (bytes > MAX_POLICY_BYTES) throw InvalidRequest(`${place}: the rules with their hosts and values take ${bytes} bytes together; at most ${MAX_POLICY_BYTES} are allowed`)
}
