// Runs lego, an ACME client: it gets one certificate into its own folder, from which it is taken.
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { constants } from 'node:fs'
import { chmod, mkdir, open, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { durationMs } from '../../../core/config/quantities.ts'
import type { HostCommands } from '../../../core/contracts/services.ts'
import { hasCode } from '../../../core/errors/system-code.ts'
import { writeFileDurably } from '../../../core/fs/durable.ts'
import { isThere } from '../../../core/fs/is-there.ts'
import { HostCommandFailed } from '../../../core/process/run.ts'
import { readIfThere } from '../../../core/fs/read-if-there.ts'
import type { AcmeConfig } from '../manifest.ts'
import type { Pair } from './authority.ts'
import { LEGO_OPEN_NAME } from './names.ts'

export interface LegoOptions {
  readonly config: AcmeConfig
  readonly directory: string
  /** of lego alone */
  readonly folder: string
  /** the root of what nginx serves for challenges, and the folder of their answers below it */
  readonly challenges: string
  readonly tokens: string
  readonly commands: HostCommands
}

const HTTP_SECONDS = '30'
const ORDER_SECONDS = '60'
const MOST_ENVIRONMENT_BYTES = 65_536
const NAME = /^[A-Z][A-Z0-9_]{0,127}$/
const MOST_REASON = 400
/** What there is of a host: lego's files, and ours with the authority that it is of. */
const DIRECTORY = 'directory'
const KINDS = ['key', 'crt', 'issuer.crt', 'json', DIRECTORY]

export class Lego {
  readonly #options: LegoOptions

  constructor (options: LegoOptions) {
    this.#options = options
  }

  /** Returns when no lego of an earlier server works in the folder any more. */
  async waitForOthers (signal: AbortSignal): Promise<void> {
    await this.#options.commands.run('flock', [this.#lock, 'true'], { signal, timeoutMs: durationMs(this.#options.config.timeout) })
    // Answers to challenges that are no longer under way.
    for (const name of await readdir(this.#options.tokens)) await rm(join(this.#options.tokens, name), { force: true })
  }

  /** @throws Error whose message is the reason of the authority or of lego */
  async obtain (host: string, signal: AbortSignal): Promise<void> {
    const { config, commands } = this.#options
    const environment = config.environment === undefined ? {} : await readEnvironment(config.environment)
    // Before it is told of this authority, nothing of another one may be left.
    await this.#forget(host)
    await mkdir(this.#certificates, { recursive: true, mode: 0o700 })
    await writeFileDurably(this.#file(host, DIRECTORY), this.#options.directory, 0o600)
    try {
      // nginx is another user, and must be able to read the answers to challenges.
      await commands.run('sh', ['-c', 'umask 022; exec "$@"', 'sh', 'flock', this.#lock, 'lego', ...this.#arguments(host), 'run'], {
        signal,
        timeoutMs: durationMs(config.timeout),
        cwd: this.#options.folder,
        env: { ...environment, ...config.authority === undefined ? {} : { LEGO_CA_CERTIFICATES: config.authority } },
        secrets: Object.values(environment).filter((value) => value.length >= 4)
      })
    } catch (error) {
      if (error instanceof HostCommandFailed) throw new Error(reasonIn(error.failure.stderr, host) ?? error.message, { cause: error })
      throw error
    } finally {
      await this.#closeAccounts()
    }
  }

  /** All of which there is anything, in the form of certificates. */
  async hosts (): Promise<string[]> {
    if (!await isThere(this.#certificates)) return []
    // It is written before anything of lego is.
    const names = (await readdir(this.#certificates)).filter((name) => name.endsWith(`.${DIRECTORY}`)).map((name) => name.slice(0, -DIRECTORY.length - 1))
    return names.map((name) => name.startsWith(`${LEGO_OPEN_NAME}.`) ? name.replace(LEGO_OPEN_NAME, '*') : name)
  }

  /** The complete certificate and key that lego has got for a host, of this authority. */
  async pair (host: string): Promise<Pair | undefined> {
    if (await readIfThere(this.#file(host, DIRECTORY)) !== this.#options.directory) return undefined
    const [certificate, key] = await Promise.all(['crt', 'key'].map(async (kind) => await readIfThere(this.#file(host, kind))))
    // lego writes the two files separately, and not atomically.
    return certificate !== undefined && key !== undefined && fits(certificate, key) ? { certificate, key } : undefined
  }

  async #forget (host: string): Promise<void> {
    for (const kind of KINDS) await rm(this.#file(host, kind), { force: true })
  }

  /** Forgets what is left of all other hosts. */
  async retainOnly (hosts: Iterable<string>): Promise<void> {
    if (!await isThere(this.#certificates)) return
    const retained = new Set([...hosts].flatMap((host) => KINDS.map((kind) => this.#file(host, kind))))
    for (const name of await readdir(this.#certificates)) {
      const path = join(this.#certificates, name)
      if (!retained.has(path)) await rm(path, { force: true })
    }
  }

  #arguments (host: string): string[] {
    const { config: { email = '', challenge, dnsProvider = '', dnsResolvers, waitForRecord }, directory, folder, challenges } = this.#options
    return [
      '--server', directory, '--email', email, '--accept-tos', '--path', folder, '--domains', host, '--key-type', 'ec256', '--http-timeout', HTTP_SECONDS, '--cert.timeout', ORDER_SECONDS,
      ...challenge === 'http-01' ? ['--http', '--http.webroot', challenges] : ['--dns', dnsProvider, ...dnsResolvers.flatMap((resolver) => ['--dns.resolvers', resolver]), ...waitForRecord ? [] : ['--dns.disable-cp']]
    ]
  }

  /** lego writes an account's key with the umask's mode, in a private folder. */
  async #closeAccounts (): Promise<void> {
    const accounts = join(this.#options.folder, 'accounts')
    if (!await isThere(accounts)) return
    for (const entry of await readdir(accounts, { recursive: true, withFileTypes: true })) if (entry.isFile()) await chmod(join(entry.parentPath, entry.name), 0o600)
  }

  #file (host: string, kind: string): string {
    return join(this.#certificates, `${host.replace('*', LEGO_OPEN_NAME)}.${kind}`)
  }

  get #certificates (): string {
    return join(this.#options.folder, 'certificates')
  }

  get #lock (): string {
    return join(this.#options.folder, 'lock')
  }
}

/** Read each time, so that a changed secret applies. @throws Error that names the file and the line's number, and contains nothing of the file */
async function readEnvironment (path: string): Promise<Record<string, string>> {
  const place = `plugins.ingress.config.certificates.acme.environment: ${path}`
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch((error: unknown) => { throw new Error(`${place} ${hasCode(error, 'ENOENT') ? 'is not there' : 'cannot be read'}`, { cause: error }) })
  try {
    const found = await handle.stat()
    if (!found.isFile() || found.size > MOST_ENVIRONMENT_BYTES) throw new Error(`${place} is no file of at most ${MOST_ENVIRONMENT_BYTES} bytes`)
    if ((found.mode & 0o077) !== 0) throw new Error(`${place} has mode ${(found.mode & 0o777).toString(8)}: others may read it (chmod 600)`)
    const lines = (await handle.readFile('utf8')).split('\n').map((line) => line.trim())
    return Object.fromEntries(lines.flatMap((line, index) => {
      if (line === '' || line.startsWith('#')) return []
      const [name = '', ...rest] = line.split('=')
      if (!NAME.test(name) || rest.length === 0) throw new Error(`${place}: line ${index + 1} must be NAME=value`)
      return [[name, rest.join('=')]]
    }))
  } finally {
    await handle.close()
  }
}

function fits (certificate: string, key: string): boolean {
  try {
    return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key))
  } catch {
    return false
  }
}

/** lego logs its steps, then the error: with the host's name, or in a line of its own. */
function reasonIn (said: string, host: string): string | undefined {
  const lines = said.split('\n').map((line) => line.trim()).filter((line) => line !== '')
  const line = lines.findLast((each) => each.startsWith(`[${host}]`) && each.includes('error')) ?? lines.findLast((each) => each.includes('error') || each.includes('Could not')) ?? lines.at(-1)
  return line?.replace(/^\d{4}\/\d\d\/\d\d \d\d:\d\d:\d\d /, '').slice(0, MOST_REASON)
}
