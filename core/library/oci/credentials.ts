// The login that a caller gives for one pull or push: its forms, and its check. It is kept in memory for that request only.
import { Type, type Static } from 'typebox'
import { InvalidRequest } from '../../errors/common.ts'

export interface RegistryCredentials { readonly username?: string, readonly password?: string, readonly registryToken?: string }

/** The form in which callers write it. */
export const CredentialsBody = Type.Object({
  username: Type.Optional(Type.String({ maxLength: 1000 })),
  password: Type.Optional(Type.String({ maxLength: 20_000 })),
  registry_token: Type.Optional(Type.String({ maxLength: 20_000 }))
}, { description: 'Login for this request only; never stored', additionalProperties: false })

/** The login in a body, or undefined when the body has none. @throws InvalidRequest */
export function credentialsOf (body: Static<typeof CredentialsBody> | undefined): RegistryCredentials | undefined {
  return body === undefined ? undefined : usableCredentials({ username: body.username, password: body.password, registryToken: body.registry_token })
}

/** The login, or undefined when nothing is given. */
export function usableCredentials (given: RegistryCredentials | undefined): RegistryCredentials | undefined {
  const username = given?.username || undefined
  const password = given?.password || undefined
  const registryToken = given?.registryToken || undefined
  if (registryToken !== undefined) {
    if (username !== undefined || password !== undefined) throw InvalidRequest('credentials: give either registry_token or username and password')
    // it becomes a header line
    if (!/^[\x21-\x7e]+$/.test(registryToken)) throw InvalidRequest('credentials.registry_token holds characters that a token cannot have')
    return { registryToken }
  }
  if (username === undefined && password === undefined) return undefined
  if (username === undefined || password === undefined) throw InvalidRequest('credentials: username and password go together')
  if (username.includes(':')) throw InvalidRequest('credentials.username must not hold a colon')
  return { username, password }
}

export function sameCredentials (a: RegistryCredentials | undefined, b: RegistryCredentials | undefined): boolean {
  return a?.username === b?.username && a?.password === b?.password && a?.registryToken === b?.registryToken
}
