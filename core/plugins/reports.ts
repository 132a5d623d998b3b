// The state of each plugin, for people (GET /plugins) and for other plugins (the service `plugins`).

export type PluginState = 'waiting' | 'started' | 'disabled' | 'skipped' | 'blocked' | 'failed'

export interface PluginReport {
  readonly id: string
  /** `waiting` only until its turn to start has come */
  readonly state: PluginState
  /** one sentence: why it has not started */
  readonly reason?: string
  /** how long its start took, `ms` */
  readonly startMs?: number
}

export interface PluginReports {
  /** every known plugin, by id */
  list (): readonly PluginReport[]
  get (id: string): PluginReport | undefined
  /** whether the plugin exists and has started; `false` for an unknown one */
  isStarted (id: string): boolean
  /** Resolves once the turn of every plugin has come, and none is `waiting` any more. Never, when the server's start is cut off before. */
  allTried (): Promise<void>
}

declare module './manifest.ts' {
  interface Cradle {
    readonly plugins: PluginReports
  }
}

/** The lifecycle writes the states here; others read them as `PluginReports`. */
export class PluginBoard implements PluginReports {
  readonly #reports = new Map<string, PluginReport>()
  #settle = (): void => {}
  readonly #settled = new Promise<void>((resolve) => { this.#settle = resolve })

  constructor (enabled: readonly string[], disabled: readonly string[]) {
    for (const id of enabled) this.set({ id, state: 'waiting' })
    for (const id of disabled) this.set({ id, state: 'disabled', reason: 'turned off in the configuration' })
  }

  set (report: PluginReport): void { this.#reports.set(report.id, report) }
  get (id: string): PluginReport | undefined { return this.#reports.get(id) }
  isStarted (id: string): boolean { return this.#reports.get(id)?.state === 'started' }
  allTried (): Promise<void> { return this.#settled }
  /** Called by the lifecycle when no further plugin starts. */
  settle (): void { this.#settle() }
  list (): readonly PluginReport[] {
    return [...this.#reports.values()].sort((a, b) => a.id < b.id ? -1 : 1)
  }
}
