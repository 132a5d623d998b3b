// A certificate and its key, read from two files and checked against each other before use.
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { constants } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { createSecureContext } from 'node:tls'
import { hasCode } from '../errors/system-code.ts'

/** far larger than a chain of certificates */
const MAX_BYTES = 256 * 1024

export interface PairFiles {
  /** PEM: the server's certificate, then the intermediate ones up to a known authority */
  readonly certificate: string
  /** PEM, without a passphrase */
  readonly key: string
}

export interface Pair {
  readonly cert: Buffer
  readonly key: Buffer
  /** when the certificate ends, as Unix time in milliseconds */
  readonly endsAt: number
  /** SHA-256 of the certificate */
  readonly fingerprint: string
}

/** What is wrong with the files, in a sentence that names the configuration's key and the file; it quotes nothing of their content. */
export class UnusablePair extends Error {
  override readonly name = 'UnusablePair'
}

/** Changes whenever either file is written, replaced, or reached through another link. */
export async function stampOf (files: PairFiles): Promise<string> {
  const stamps = await Promise.all([files.certificate, files.key].map(async (path) => {
    try {
      const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true })
      return [dev, ino, size, mtimeNs, ctimeNs].join(' ')
    } catch (error) {
      return codeOf(error)
    }
  }))
  return stamps.join(', ')
}

/** @param place the place of the two files in the configuration. @throws UnusablePair */
export async function readPair (files: PairFiles, place = 'server.tls'): Promise<Pair> {
  const certificate = await readFile(`${place}.certificate`, files.certificate, { isSecret: false })
  const key = await readFile(`${place}.key`, files.key, { isSecret: true })
  const leaf = parsed(`${place}.certificate`, files.certificate, 'holds no certificate in PEM', () => new X509Certificate(certificate))
  const own = parsed(`${place}.key`, files.key, 'holds no private key in PEM that needs no passphrase', () => createPrivateKey(key))
  if (!leaf.checkPrivateKey(own)) throw new UnusablePair(`${place}.key: ${files.key} is not the key of the certificate in ${files.certificate}`)
  parsed(`${place}.certificate`, files.certificate, 'cannot be used with its key', () => createSecureContext({ cert: certificate, key }))
  return { cert: certificate, key, endsAt: Date.parse(leaf.validTo), fingerprint: leaf.fingerprint256 }
}

function parsed<T> (name: string, path: string, rule: string, parse: () => T): T {
  try {
    return parse()
  } catch {
    // OpenSSL's message may quote the file.
    throw new UnusablePair(`${name}: ${path} ${rule}`)
  }
}

async function readFile (name: string, path: string, { isSecret }: { readonly isSecret: boolean }): Promise<Buffer> {
  const refuse = (rule: string): never => { throw new UnusablePair(`${name}: ${path} ${rule}`) }
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return refuse('is not there')
    return refuse(`cannot be read (${codeOf(error)})`)
  })
  try {
    const found = await handle.stat()
    if (!found.isFile()) refuse('is not a file')
    if (found.size > MAX_BYTES) refuse(`has more than ${MAX_BYTES} bytes`)
    if (isSecret) {
      const own = process.getuid?.()
      if (own !== undefined && found.uid !== own && found.uid !== 0) refuse(`belongs to user ${found.uid}: it must be root's or the server's own`)
      if ((found.mode & 0o027) !== 0) refuse(`has mode ${(found.mode & 0o777).toString(8)}: others may read it, or its group may change it (chmod 640)`)
    }
    // Reads no more than that, even if the file grows meanwhile.
    const content = Buffer.alloc(MAX_BYTES)
    const { bytesRead } = await handle.read(content, 0, MAX_BYTES, 0)
    return content.subarray(0, bytesRead)
  } finally {
    await handle.close()
  }
}

function codeOf (error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
}
