// Checks the URL of a receiver.
import { isIP } from 'node:net'
import { InvalidRequest } from '../../core/errors/common.ts'
import { AddressRefused, type ResolveHost } from '../../core/library/addresses.ts'
import { AddressNotAllowed } from './errors.ts'

/** The URL in its normal form. Names are vetted when they are dialled. @throws invalid_request, address_refused */
export async function checkUrl (text: string, resolve: ResolveHost): Promise<string> {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !['http:', 'https:'].includes(url.protocol)) throw InvalidRequest('url: must be an address such as https://ci.example.com/hook')
  if (url.username !== '' || url.password !== '') throw InvalidRequest('url: must have no user name and no password; deliveries are signed instead')
  if (url.hash !== '') throw InvalidRequest('url: must have no fragment')
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  if (isIP(host) !== 0) {
    try {
      await resolve({ host: url.hostname, port: Number(url.port) })
    } catch (error) {
      if (error instanceof AddressRefused) throw AddressNotAllowed(error.message)
      throw error
    }
  }
  return url.href
}
