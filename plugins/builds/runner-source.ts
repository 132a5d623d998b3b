// Provides a runner, so that the plugin works with any. Types only.
import type { Cradle, ServiceKey } from '../../core/plugins/manifest.ts'
import type { BuildsConfig } from './config.ts'
import type { BuildRunner } from './run.ts'

/** A runner that may need to be closed. */
export interface ClosableRunner extends BuildRunner {
  close? (): Promise<void>
}

/** Who does the builds. */
export interface RunnerSource {
  /** services that it needs */
  readonly requires: readonly ServiceKey[]
  readonly optional: readonly ServiceKey[]
  make (deps: Cradle, config: BuildsConfig): ClosableRunner
}
