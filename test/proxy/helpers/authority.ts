// Certificates for the origins of tests, from an authority of their own.
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { buildAuthority, createLeafBuilder } from '../../../proxy/tls/certificate.ts'

export interface TestAuthority {
  readonly certificatePem: string
  issue (host: string, days?: number): { readonly cert: string, readonly key: string }
}

/** Makes an authority; `days` below zero makes certificates that have expired. */
export function createTestAuthority (name = 'Origins of a test'): TestAuthority {
  const key: KeyObject = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  const certificatePem = buildAuthority(key, name, 30)
  const leaf = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const build = createLeafBuilder({ certificatePem, key }, leaf.publicKey)
  const keyPem = leaf.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  return { certificatePem, issue: (host, days = 10) => ({ cert: build(host, days), key: keyPem }) }
}
