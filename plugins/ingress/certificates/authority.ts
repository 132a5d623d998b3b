// An authority of this server's own, for names without a public certificate.
import { chmod, readdir, readFile, rm } from 'node:fs/promises'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { HostCommands } from '../../../core/contracts/services.ts'
import { isThere } from '../../../core/fs/is-there.ts'
import { renameDurably, syncFile } from '../../../core/fs/durable.ts'

const CURVE = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'] as const
const AUTHORITY_DAYS = '3650'
const LEAF_DAYS = '90'
/** what the files of a certificate begin with while it is made */
const LEAF = 'leaf-'

export interface Pair { readonly certificate: string, readonly key: string }

export class Authority {
  readonly #folder: string
  readonly #commands: HostCommands
  #made: Promise<void> | undefined

  /** @param folder of the server alone */
  constructor (folder: string, commands: HostCommands) {
    this.#folder = folder
    this.#commands = commands
  }

  /** Its certificate as PEM, for clients that should trust it. */
  async certificate (): Promise<string> {
    await this.#ensure()
    return await readFile(this.#file('authority.pem'), 'utf8')
  }

  async issue (host: string): Promise<Pair> {
    await this.#ensure()
    const temporary = `${LEAF}${randomBytes(8).toString('hex')}`
    const [certificate, key] = [this.#file(`${temporary}.pem`), this.#file(`${temporary}.key`)]
    try {
      await this.#openssl(['req', '-x509', ...CURVE, '-keyout', key, '-out', certificate, '-CA', this.#file('authority.pem'), '-CAkey', this.#file('authority.key'), '-days', LEAF_DAYS, '-subj', '/CN=Berth ingress',
        '-addext', `subjectAltName=DNS:${host}`, '-addext', 'basicConstraints=critical,CA:FALSE', '-addext', 'extendedKeyUsage=serverAuth'])
      const leaf = await readFile(certificate, 'utf8')
      return { certificate: `${leaf}${await this.certificate()}`, key: await readFile(key, 'utf8') }
    } finally {
      await Promise.all([rm(certificate, { force: true }), rm(key, { force: true })])
    }
  }

  async #ensure (): Promise<void> {
    this.#made ??= this.#make()
    try {
      await this.#made
    } catch (error) {
      this.#made = undefined
      throw error
    }
  }

  /** The certificate is written last: without it, key and certificate are made again. */
  async #make (): Promise<void> {
    const [key, certificate] = [this.#file('authority.key'), this.#file('authority.pem')]
    // What openssl has written for a server that was killed.
    for (const name of await readdir(this.#folder)) if (name.startsWith(LEAF)) await rm(this.#file(name), { force: true })
    if (await isThere(certificate)) return
    const temporary = this.#file('authority.new')
    await this.#openssl(['req', '-x509', ...CURVE, '-keyout', key, '-out', temporary, '-days', AUTHORITY_DAYS, '-subj', `/CN=Berth ingress ${randomBytes(4).toString('hex')}`,
      '-addext', 'basicConstraints=critical,CA:TRUE,pathlen:0', '-addext', 'keyUsage=critical,keyCertSign,cRLSign'])
    await chmod(key, 0o600)
    await Promise.all([syncFile(key), syncFile(temporary)])
    await renameDurably(temporary, certificate)
  }

  async #openssl (args: readonly string[]): Promise<void> {
    await this.#commands.run('openssl', args, { timeoutMs: 30_000 })
  }

  #file (name: string): string {
    return join(this.#folder, name)
  }
}
