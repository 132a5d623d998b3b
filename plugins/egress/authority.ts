// What guests are given to trust: the proxy's certificate, its name in a folder of certificates, and a bundle for images without any authorities.
import { rootCertificates } from 'node:tls'
import type { HostCommands } from '../../core/contracts/services.ts'
import { readIfThere } from '../../core/fs/read-if-there.ts'
import type { EgressAuthority } from '../instances/egress/contract.ts'

/** Debian's bundle, which the host's administrator maintains. */
const HOST_BUNDLE = '/etc/ssl/certs/ca-certificates.crt'
/** the largest bundle that a guest takes */
const MAX_BUNDLE_BYTES = 2 ** 20

export class AuthorityMaker {
  readonly #commands: HostCommands
  readonly #hostBundle: string
  #last: EgressAuthority | undefined

  constructor (commands: HostCommands, hostBundle = HOST_BUNDLE) {
    this.#commands = commands
    this.#hostBundle = hostBundle
  }

  /** @param certificate PEM */
  async make (certificate: string): Promise<EgressAuthority> {
    if (this.#last?.certificate === certificate) return this.#last
    const [{ stdout }, roots] = await Promise.all([this.#commands.run('openssl', ['x509', '-noout', '-subject_hash'], { input: certificate }), this.#roots(certificate)])
    this.#last = { certificate, subjectHash: stdout.trim(), bundle: `${roots.trimEnd()}\n${certificate}` }
    return this.#last
  }

  /** Guests speak with origins directly on other ports, so the public authorities stay in the bundle. */
  async #roots (certificate: string): Promise<string> {
    const text = await readIfThere(this.#hostBundle)
    const fits = text !== undefined && text.includes('-----BEGIN CERTIFICATE-----') && !text.includes('\0') &&
      Buffer.byteLength(text) + Buffer.byteLength(certificate) < MAX_BUNDLE_BYTES
    return fits ? text : rootCertificates.join('\n')
  }
}
