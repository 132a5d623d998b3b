// Creates, starts and stops plugins in their order. It decides which may start.
import { setImmediate as turn } from 'node:timers/promises'
import type { AwilixContainer } from 'awilix'
import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { CORE_SCOPES } from '../auth/scopes.ts'
import { ANY_KEY } from '../http/authorize.ts'
import type { Logger } from '../contracts/services.ts'
import { CALLED_ERRORS } from '../http/route-errors.ts'
import { errorsOfCalled } from './called-errors.ts'
import { suppliersOf } from './graph.ts'
import type { AllDeps, Created, Plugin, SlotName } from './manifest.ts'
import { cradleFor, registerCreated, registerSlot } from './registrar.ts'
import type { PluginBoard, PluginReport } from './reports.ts'
import { withDeadline } from './deadline.ts'

/** One enabled plugin with its settings. */
export interface PlannedPlugin {
  readonly plugin: Plugin
  readonly config: Record<string, unknown>
  readonly onFailure: 'abort' | 'continue'
}

export interface LifecycleOptions {
  /** in start order */
  readonly plugins: readonly PlannedPlugin[]
  readonly container: AwilixContainer
  readonly coreKeys: readonly string[]
  readonly board: PluginBoard
  readonly log: Logger
  readonly startTimeoutMs: number
  readonly stopTimeoutMs: number
}

interface Member extends PlannedPlugin {
  readonly id: string
  readonly deps: AllDeps
  /** set once its turn to start has come */
  created?: Created
}

/** A plugin that prevented the application from starting. */
export class PluginStartFailed extends Error {
  override readonly name = 'PluginStartFailed'
}

/** The life of all plugins of one application: `start`, `mount`, then `stop` in the exact reverse order. */
export class Lifecycle {
  readonly #options: LifecycleOptions
  readonly #members: readonly Member[]
  /** started and not yet stopped, in start order */
  #running: Member[] = []
  readonly #aborted = new AbortController()

  constructor (options: LifecycleOptions) {
    this.#options = options
    const isReady = (key: string): boolean => this.#unmet(key) === undefined
    this.#members = options.plugins.map(planned => ({
      ...planned, id: planned.plugin.manifest.id, deps: cradleFor(options.container, planned.plugin.manifest, isReady)
    }))
    for (const slot of this.#slots()) registerSlot(options.container, slot, () => this.#startedFillers(slot))
  }

  /** Starts one plugin after the other. Rejects with `PluginStartFailed` when a plugin fails, unless its `onFailure` is `continue`; all are stopped by then. */
  async start (): Promise<void> {
    for (const member of this.#members) {
      if (this.#options.board.get(member.id)?.state === 'failed') continue
      this.#aborted.signal.throwIfAborted()
      const reason = this.#blockedBy(member)
      if (reason === undefined) await this.#startOne(member)
      else this.#report({ id: member.id, state: 'blocked', reason })
    }
    this.#options.board.settle()
  }

  /** Leaves out a plugin that could not be made ready for its start. @throws the failure, unless its `onFailure` is `continue` */
  leaveOut (id: string, failure: PluginStartFailed): void {
    if (this.#members.find(member => member.id === id)?.onFailure !== 'continue') throw failure
    this.#report({ id, state: 'failed', reason: failure.message })
    this.#goOnWithout(id, failure)
  }

  /**
   * Mounts the routes of the plugins that have started, each in a Fastify context of its own. Rejects with `PluginStartFailed` when one of them fails or takes longer than a start may, whatever its
   * `onFailure` is: Fastify cannot take back what has been mounted of it.
   */
  async mount (http: FastifyInstance): Promise<void> {
    for (const { id, plugin, created } of this.#running) {
      if (created?.routes === undefined) continue
      try {
        await http.register(this.#withErrors(plugin, withScopes(plugin, created.routes)))
      } catch (error) {
        throw new PluginStartFailed(`the routes of plugin ${id} could not be mounted: ${messageOf(error)}`, { cause: error })
      }
    }
  }

  /** Aborts a start that is running: the plugin that is starting sees its signal abort, and no other starts. */
  abort (reason: Error): void {
    this.#aborted.abort(reason)
  }

  /** Stops the started plugins, last started first. A failure or a timeout is logged, and the next plugin is stopped all the same. */
  async stop (): Promise<void> {
    for (let member = this.#running.pop(); member !== undefined; member = this.#running.pop()) await this.#stopOne(member)
  }

  async #startOne (member: Member): Promise<void> {
    const { id, onFailure } = member
    const { startTimeoutMs } = this.#options
    const began = performance.now()
    try {
      await withDeadline(`starting plugin ${id}`, startTimeoutMs, this.#aborted.signal,
        async signal => { await this.#create(member, signal) })
      this.#running.push(member)
      const startMs = Math.round(performance.now() - began)
      this.#report({ id, state: 'started', startMs })
    } catch (error) {
      await this.#stopOne(member)
      if (error instanceof Error && error.name === 'SkipPlugin') return this.#report({ id, state: 'skipped', reason: error.message })
      this.#report({ id, state: 'failed', reason: messageOf(error) })
      const failure = new PluginStartFailed(`plugin ${id} did not start: ${messageOf(error)}`, { cause: error })
      if (onFailure === 'continue' && !this.#aborted.signal.aborted) return this.#goOnWithout(id, failure)
      await this.stop()
      throw failure
    }
  }

  #goOnWithout (id: string, failure: PluginStartFailed): void {
    this.#options.log.error({ err: failure, plugin: id }, 'plugin failed; going on without it')
  }

  async #create (member: Member, signal: AbortSignal): Promise<void> {
    const { plugin, deps, config } = member
    const created = await plugin.create?.(deps, config) ?? {}
    signal.throwIfAborted()
    registerCreated(this.#options.container, plugin.manifest, created)
    member.created = created
    await created.start?.(signal)
  }

  async #stopOne ({ created, id }: Member): Promise<void> {
    const { stopTimeoutMs, log } = this.#options
    try {
      await withDeadline(`stopping plugin ${id}`, stopTimeoutMs, undefined, async () => { await created?.stop?.() })
      log.debug({ plugin: id }, 'plugin stopped')
    } catch (error) {
      log.error({ err: error, plugin: id }, 'plugin did not stop cleanly')
    }
  }

  #report (report: PluginReport): void {
    const { board, log } = this.#options
    board.set(report)
    const { id, ...facts } = report
    log[report.state === 'started' ? 'info' : 'warn']({ plugin: id, ...facts }, `plugin ${report.state}`)
  }

  #blockedBy ({ plugin }: Member): string | undefined {
    const reasons = plugin.manifest.requires.map(key => this.#unmet(key)).filter(reason => reason !== undefined)
    return reasons.length === 0 ? undefined : reasons.join('; ')
  }

  /** Why no started plugin supplies a key or slot; `undefined` when one does. One filler is enough for a slot. */
  #unmet (key: string): string | undefined {
    const { board, coreKeys, plugins } = this.#options
    if (coreKeys.includes(key)) return undefined
    const suppliers = suppliersOf(key, plugins.map(planned => planned.plugin.manifest)).map(manifest => board.get(manifest.id))
    if (suppliers.some(report => report?.state === 'started')) return undefined
    const why = suppliers.flatMap(report => report === undefined ? [] : [`plugin ${report.id} is ${report.state}${report.reason === undefined ? '' : ` (${report.reason})`}`])
    return `"${key}" is not there: ${why.length === 0 ? 'no enabled plugin provides it' : why.join(', ')}`
  }

  /** Mounts the routes of a plugin, with the errors of the plugins that it calls. */
  #withErrors ({ manifest }: Plugin, routes: FastifyPluginAsync): FastifyPluginAsync {
    const errors = errorsOfCalled(manifest, this.#running.map(({ plugin }) => plugin.manifest))
    return async (http) => {
      // Fastify mounts everything that has been registered in one turn of the event loop.
      await turn()
      http.decorate(CALLED_ERRORS, errors)
      // Within what Fastify waits for: it can be closed only when that comes to its end.
      await withDeadline('mounting them', this.#options.startTimeoutMs, this.#aborted.signal, async () => { await http.register(routes) })
    }
  }

  #slots (): SlotName[] {
    return [...new Set(this.#members.flatMap(({ plugin }) => plugin.manifest.fills?.slot ?? []))]
  }

  #startedFillers (slot: SlotName): string[] {
    return this.#running.flatMap(({ plugin: { manifest: { fills } } }) => fills?.slot === slot ? [fills.name] : [])
  }
}

/** Mounts the routes of a plugin; refuses one with a scope that no manifest names, since no key could have it. */
function withScopes ({ manifest: { scopes = [] } }: Plugin, routes: FastifyPluginAsync): FastifyPluginAsync {
  return async http => {
    http.addHook('onRoute', ({ method, url, config }) => {
      const scope = config?.scope ?? null
      if (scope !== null && scope !== ANY_KEY && !CORE_SCOPES.includes(scope) && !scopes.includes(scope)) throw new Error(`route ${[method].flat().join(',')} ${url} asks for the scope ${scope}, which is not in the manifest's scopes`)
    })
    await http.register(routes)
  }
}

/** The message of a thrown value of any kind. */
export function messageOf (error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
