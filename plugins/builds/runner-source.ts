// Where a runner comes from, so that the plugin works with any. Types only.
import type { Cradle, ServiceKey } from '../../core/plugins/manifest.ts'
import type { BuildsConfig } from './config.ts'
import type { BuildRunner } from './run.ts'

/** A runner that may have something to end. */
export interface ClosableRunner extends BuildRunner {
  close? (): Promise<void>
}

/** Who does the builds. */
export interface RunnerSource {
  /** what it needs of others */
  readonly requires: readonly ServiceKey[]
  readonly optional: readonly ServiceKey[]
  make (deps: Cradle, config: BuildsConfig): ClosableRunner
}
