// The names of /etc/hosts as it is now. It is read again only when it has changed, since a long one (lists of hosts to block have many thousand lines) takes a while to read.
import { readFile, stat } from 'node:fs/promises'
import { readHosts } from '../contract/hosts-file.ts'
import { hasCode } from '../log/error-code.ts'

type Names = ReadonlyMap<string, readonly string[]>

const PATH = '/etc/hosts'

export class HostsFile {
  #known: { readonly version: string, readonly names: Promise<Names> } | undefined

  /** The addresses of a canonical name. */
  async addressesOf (name: string): Promise<readonly string[]> {
    const version = await versionOfFile()
    if (this.#known?.version !== version) {
      const known = { version, names: read() }
      this.#known = known
      // Whoever waits for it hears of it; the next one tries again.
      known.names.catch(() => { if (this.#known === known) this.#known = undefined })
    }
    return (await this.#known.names).get(name) ?? []
  }
}

/** Differs whenever the file is another; empty without a file, or with one that this user may not read, which the system's own functions pass over, too. */
async function versionOfFile (): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(PATH, { bigint: true })
    return [dev, ino, size, mtimeNs, ctimeNs].join()
  } catch (error) {
    return emptyIfAbsent(error)
  }
}

async function read (): Promise<Names> {
  return readHosts(await readFile(PATH, 'utf8').catch(emptyIfAbsent))
}

function emptyIfAbsent (error: unknown): '' {
  if (hasCode(error, 'ENOENT', 'EACCES')) return ''
  throw error
}
