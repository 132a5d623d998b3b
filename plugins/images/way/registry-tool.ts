// Runs skopeo, whose registries are chosen by users, and which follows their redirects: its only network access is the vetting proxy.
import { createServer } from 'node:net'
import { once } from 'node:events'
import type { HostCommands, Logger, RunResult } from '../../../core/contracts/services.ts'
import { HostCommandFailed, HostCommandMissing } from '../../../core/process/errors.ts'
import type { RegistryAccess, ToolOptions } from '../contract.ts'
import { formatSize } from '../../../core/units.ts'
import { PullFailure } from '../failures.ts'
import type { ResolveHost } from '../../../core/library/addresses.ts'
import { EnclosureRefused, openEnclosure, type Enclosure } from './enclosure.ts'
import { ForwardProxy } from './forward-proxy.ts'

export interface RegistryToolParts {
  readonly commands: HostCommands
  readonly log: Logger
  readonly resolve: ResolveHost
}

/** how often it is told how much has come */
const PROGRESS_MS = 500
// exit code of setpriv for a missing command
const NOT_FOUND = 127

export class RegistryTool {
  readonly #parts: RegistryToolParts
  readonly #proxy: ForwardProxy
  #place: Promise<Enclosure> | undefined

  constructor (parts: RegistryToolParts) {
    this.#parts = parts
    this.#proxy = new ForwardProxy(parts.resolve)
  }

  /** @throws PullFailure when a registry sent it to a forbidden address, otherwise the command's error */
  async run (args: readonly string[], accesses: readonly RegistryAccess[], options: ToolOptions): Promise<RunResult> {
    const { port, enter } = await this.#open()
    const { maxBytes } = options
    const use = this.#proxy.open(new Map(accesses.flatMap(({ local }) => local?.endpoints ?? [])), maxBytes)
    const watch = options.received === undefined ? undefined : setInterval(() => { options.received?.(use.receivedBytes) }, PROGRESS_MS).unref()
    const address = `http://${use.username}:${use.password}@127.0.0.1:${port}`
    // A tool must not continue when the server is killed: it has no network access any more, and its caller is told that it has failed.
    const command = [...enter, 'setpriv', '--pdeathsig', 'KILL', 'skopeo', ...args]
    try {
      const result = await this.#parts.commands.run(command[0] ?? '', command.slice(1), {
        ...options,
        secrets: [...accesses.flatMap(({ secrets }) => secrets), use.password],
        env: { ...options.env, HTTP_PROXY: address, HTTPS_PROXY: address, NO_PROXY: '' }
      })
      options.received?.(use.receivedBytes)
      return result
    } catch (error) {
      options.signal.throwIfAborted()
      if (use.isExceeded) throw new PullFailure('corrupt', `the registry sends more than the image's manifest announces, and was cut off after ${formatSize(maxBytes ?? 0)}`, error)
      const [refused] = use.refused
      if (error instanceof HostCommandFailed && refused !== undefined) {
        throw new PullFailure('address-refused', `the registry leads to ${refused}, which is at an address that this server does not dial: a private one, its own, or a metadata service`, error)
      }
      if (error instanceof HostCommandFailed && error.failure.exitCode === NOT_FOUND) throw HostCommandMissing.from(error, 'skopeo')
      throw error instanceof HostCommandFailed ? inPlainWords(error, accesses) : error
    } finally {
      clearInterval(watch)
      use.close()
    }
  }

  async close (): Promise<void> {
    const place = this.#place
    this.#place = undefined
    this.#proxy.close()
    await (await place?.catch(() => undefined))?.close()
  }

  async #open (): Promise<Enclosure> {
    this.#place ??= this.#make()
    this.#place.catch(() => { this.#place = undefined })
    return await this.#place
  }

  async #make (): Promise<Enclosure> {
    // For the life of this server: only where that is how it will always be. Anything else fails this one command.
    const place = await openEnclosure().catch(async (error: unknown) => {
      if (!(error instanceof EnclosureRefused)) throw error
      this.#parts.log.warn({ err: error }, 'tools that talk to registries run without a network namespace of their own: a registry can send them to loopback addresses of this host')
      return await openUnenclosed()
    })
    this.#proxy.serve(place.listener)
    return place
  }
}

async function openUnenclosed (): Promise<Enclosure> {
  const listener = createServer().listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const address = listener.address()
  if (address === null || typeof address === 'string') throw new Error('the proxy of the tools got no port')
  return { listener, port: address.port, enter: [], close: async () => { listener.close() } }
}

/** Users know the registry by the name that they wrote. */
function inPlainWords (error: HostCommandFailed, accesses: readonly RegistryAccess[]): HostCommandFailed {
  const plain = (text: string): string => accesses.reduce((all, { local }) => local === undefined ? all : all.replaceAll(local.alias, local.name), text)
  const { failure } = error
  const how = error.message.slice(failure.command.length + ': '.length).split('\n')[0] ?? ''
  return new HostCommandFailed({ ...failure, command: plain(failure.command), stderr: plain(failure.stderr) }, how)
}
