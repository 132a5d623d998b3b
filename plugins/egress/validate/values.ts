// The rules for the real values of credentials. No message contains a value.
import { InvalidRequest } from '../../../core/errors/common.ts'
import { isFieldValue } from '../../../proxy/contract/header-rules.ts'
import type { CredentialRequest } from '../../instances/egress/contract.ts'
import { MAX_HEADER, MAX_VALUE, mockOf } from './text.ts'

const PLACEHOLDER = '${value}'

/** The variables that hold real values, each once. */
export function sourcesOf (credentials: Readonly<Record<string, CredentialRequest>>): string[] {
  return [...new Set(Object.values(credentials).map(({ source }) => source.env))]
}

/**
 * Whether a value can be used for every credential that it is the source of.
 * @throws InvalidRequest naming `env.<NAME>`
 */
export function checkValue (name: string, value: string, credentials: Readonly<Record<string, CredentialRequest>>): void {
  const place = `env.${name}`
  if (value === '') throw InvalidRequest(`${place}: is empty, and a credential needs its value`)
  if (value.length > MAX_VALUE) throw InvalidRequest(`${place}: has ${value.length} characters; a credential has at most ${MAX_VALUE}`)
  if (!isFieldValue(value)) throw InvalidRequest(`${place}: holds a character that a header cannot hold, or begins or ends with white space`)
  for (const [credential, { source, inject }] of Object.entries(credentials)) {
    // Otherwise the value in an origin's answer could not be told from the guest's own text.
    if (value === mockOf(credential)) throw InvalidRequest(`${place}: is the text that guests see in place of the credential ${credential}`)
    if (source.env !== name) continue
    for (const [index, { as: { format } }] of inject.entries()) {
      const times = format.split(PLACEHOLDER).length - 1
      const length = format.length + times * (value.length - PLACEHOLDER.length)
      if (length > MAX_HEADER) throw InvalidRequest(`${place}: makes a header of ${length} characters with credentials.${credential}.inject[${index}].as.format; at most ${MAX_HEADER} are allowed`)
    }
  }
}
