// Checks the login that a caller lends for one pull. It is kept in memory for that pull only.
import { InvalidRequest } from '../../core/errors/common.ts'
import type { RegistryCredentials } from './contract.ts'

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
