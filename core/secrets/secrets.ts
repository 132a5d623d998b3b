// The service `secrets`: seals texts before they are stored in the database, by AES-256-GCM under the key of this data folder.
import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { Secrets } from '../contracts/services.ts'
import { SecretUnavailable } from './errors.ts'
import { openKey } from './key-file.ts'

const CIPHER = 'aes-256-gcm'
const VERSION = 'v1'
const NONCE_BYTES = 12
const TAG_BYTES = 16
const SEALED = /^v1\.([0-9a-f]{16})\.([A-Za-z0-9_-]+)$/

/** Opens the key in `keys/` of the data folder; the first start makes it. */
export async function openSecrets (dataDir: string): Promise<Secrets> {
  return createSecrets(await openKey(join(dataDir, 'keys', 'secrets.key')))
}

/** A sealed text is `v1.<id of the key>.<nonce, encrypted text and tag in base64url>`. */
export function createSecrets (key: Buffer): Secrets {
  const keyId = createHmac('sha256', key).update('berth: id of a key').digest('hex').slice(0, 16)
  // Purpose and format are authenticated with the text, but not stored in it.
  const proven = (purpose: string): Buffer => Buffer.from(`${VERSION}\0${keyId}\0${purpose}`)
  return {
    seal (purpose, secret) {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES }).setAAD(proven(purpose))
      const parts = [nonce, cipher.update(secret, 'utf8'), cipher.final()]
      return `${VERSION}.${keyId}.${Buffer.concat([...parts, cipher.getAuthTag()]).toString('base64url')}`
    },
    open (purpose, sealed) {
      const [, id, text = ''] = SEALED.exec(sealed) ?? []
      const bytes = Buffer.from(text, 'base64url')
      // Only the canonical form is accepted: decoding base64 ignores some bits of the last letter.
      if (id === undefined || bytes.toString('base64url') !== text || bytes.length < NONCE_BYTES + TAG_BYTES) throw SecretUnavailable('it was changed, or is of another version')
      if (id !== keyId) throw SecretUnavailable(`it was sealed under the key ${id}, and the key in keys/secrets.key is ${keyId}`)
      const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
      decipher.setAAD(proven(purpose)).setAuthTag(bytes.subarray(-TAG_BYTES))
      try {
        return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]).toString('utf8')
      } catch (error) {
        throw SecretUnavailable.from(error, 'it was changed, or sealed for another purpose')
      }
    }
  }
}
