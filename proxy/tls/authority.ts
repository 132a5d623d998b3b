// The certificate authority of this host: made at the first start, afterwards only read. Its key never leaves this program and its file.
import { createHash, createPublicKey, generateKeyPair, X509Certificate, type KeyObject } from 'node:crypto'
import { chmod, link, lstat, mkdir, open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { hasCode } from '../log/error-code.ts'
import { buildAuthority, createLeafBuilder, readPrivateKey, type Issuer } from './certificate.ts'

const generate = promisify(generateKeyPair)
const AUTHORITY_DAYS = 3650
const LEAF_DAYS = 30

export interface Leaf {
  readonly certificatePem: string
  readonly keyPem: string
  readonly notAfterMs: number
}

export interface Authority {
  readonly certificatePem: string
  /** Makes a server certificate for a canonical host name. */
  issue (host: string): Leaf
}

/** Opens the authority in `directory`, or makes it when there is none yet. Refuses a key that others could have read. */
export async function openAuthority (directory: string): Promise<Authority> {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const issuer = await readIssuer(directory) ?? await createIssuer(directory)
  // One key for all certificates: a key for each host would cost more than everything else about a new host.
  const { publicKey, privateKey } = await generate('ec', { namedCurve: 'P-256' })
  const build = createLeafBuilder(issuer, publicKey)
  const keyPem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  return {
    certificatePem: issuer.certificatePem,
    issue: host => ({ certificatePem: build(host, LEAF_DAYS), keyPem, notAfterMs: Date.now() + LEAF_DAYS * 24 * 60 * 60 * 1000 })
  }
}

async function readIssuer (directory: string): Promise<Issuer | undefined> {
  const keyPath = join(directory, 'ca.key')
  const certificatePath = join(directory, 'ca.crt')
  const keyPem = await readOwnFile(keyPath)
  if (keyPem === undefined) {
    // Guests trust this certificate: a new one would break TLS in all of them, without a visible reason.
    if (await readCertificate(certificatePath) !== undefined) throw new Error(`${certificatePath} has lost its key: restore it, or remove the certificate to have a new authority made, which guests must then be given`)
    return undefined
  }
  const key = readPrivateKey(keyPem, keyPath)
  const certificatePem = await readCertificate(certificatePath) ?? await writeNew(certificatePath, buildAuthority(key, commonName(key), AUTHORITY_DAYS), 0o644)
  checkPair(key, certificatePem, certificatePath)
  return { key, certificatePem }
}

async function readCertificate (path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}

function checkPair (key: KeyObject, certificatePem: string, place: string): void {
  const certificate = new X509Certificate(certificatePem)
  if (!certificate.checkPrivateKey(key)) throw new Error(`${place} does not belong to the key beside it`)
  if (Date.parse(certificate.validTo) < Date.now()) throw new Error(`${place} has expired: remove it and its key to have new ones made, which guests must then be given`)
}

/** The file's text when only this user can read it; `undefined` when it does not exist. */
async function readOwnFile (path: string): Promise<string | undefined> {
  try {
    const found = await lstat(path)
    if (!found.isFile()) throw new Error(`${path} is not a file`)
    if ((found.mode & 0o777) !== 0o600) throw new Error(`${path} has mode ${(found.mode & 0o777).toString(8)} instead of 600: others may have read the key`)
    if (found.uid !== process.getuid?.()) throw new Error(`${path} belongs to another user`)
    return await readFile(path, 'utf8')
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}

async function createIssuer (directory: string): Promise<Issuer> {
  await chmod(directory, 0o700)
  const { privateKey } = await generate('rsa', { modulusLength: 2048 })
  const certificatePem = buildAuthority(privateKey, commonName(privateKey), AUTHORITY_DAYS)
  // The key is written first: a missing certificate is made from it at the next start.
  await writeNew(join(directory, 'ca.key'), privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), 0o600)
  await writeNew(join(directory, 'ca.crt'), certificatePem, 0o644)
  return { key: privateKey, certificatePem }
}

/** Different for each authority, so that clients that know two can tell them apart. */
function commonName (key: KeyObject): string {
  const digest = createHash('sha256').update(createPublicKey(key).export({ type: 'spki', format: 'der' })).digest('hex')
  return `Berth egress ${digest.slice(0, 12)}`
}

/** Writes a file completely or not at all, and never over an existing one. */
async function writeNew (path: string, text: string, mode: number): Promise<string> {
  const temporary = `${path}.${process.pid}.new`
  const file = await open(temporary, 'wx', mode)
  try {
    await file.writeFile(text)
    await file.sync()
    await link(temporary, path)
  } finally {
    await file.close()
    await rm(temporary, { force: true })
  }
  return text
}
