// The operator's own certificates: read and checked at the start, and again when their files change.
import { X509Certificate } from 'node:crypto'
import type { Logger } from '../../../core/contracts/services.ts'
import { followPair, type FollowedPair } from '../../../core/tls/follow.ts'
import type { Pair as ReadPair, PairFiles } from '../../../core/tls/pair.ts'
import type { Pair } from './authority.ts'

export interface OwnFilesOptions {
  readonly files: readonly PairFiles[]
  readonly log: Logger
  readonly intervalMs?: number
}

interface Known { readonly names: ReadonlySet<string>, readonly pair: Pair }

export class OwnFiles {
  readonly #options: OwnFilesOptions
  readonly #known: (Known | undefined)[] = []
  readonly #followed: FollowedPair[] = []
  #onChange: () => void = () => {}

  constructor (options: OwnFilesOptions) {
    this.#options = options
  }

  /** @throws UnusablePair, which names the key of the configuration and the fault */
  async open (onChange: () => void): Promise<void> {
    this.#onChange = onChange
    const { files, log, intervalMs } = this.#options
    for (const [index, pair] of files.entries()) {
      const use = (read: ReadPair): void => {
        this.#known[index] = knownOf(read)
        this.#onChange()
      }
      const followed = await followPair({
        files: pair, use, log, owner: `ingresses in ${pair.certificate}`, place: `plugins.ingress.config.certificates.files.${index}`, ...intervalMs === undefined ? {} : { intervalMs }
      })
      this.#followed.push(followed)
      this.#known[index] = knownOf(followed.first)
    }
  }

  /** @param host in the form of certificates: only a wildcard matches `*.example.com`. The first pair in the list that matches is used. */
  pairFor (host: string): Pair | undefined {
    const wildcard = `*.${host.slice(host.indexOf('.') + 1)}`
    return this.#known.find((known) => known?.names.has(host) === true || known?.names.has(wildcard) === true)?.pair
  }

  close (): void {
    for (const each of this.#followed) each.close()
  }
}

function knownOf ({ cert, key }: ReadPair): Known {
  const { subjectAltName = '' } = new X509Certificate(cert)
  const names = subjectAltName.split(', ').flatMap((name) => name.startsWith('DNS:') ? [name.slice(4).toLowerCase()] : [])
  return { names: new Set(names), pair: { certificate: cert.toString('utf8'), key: key.toString('utf8') } }
}
