// The one table of environment variables that override the configuration, and the only place that reads the environment.

export type Environment = Readonly<Record<string, string | undefined>>

export interface EnvironmentOverride {
  readonly name: string
  /** the place in the configuration that it overrides */
  readonly path: readonly [string, string]
  readonly description: string
}

/** A variable that is set but empty counts as not set. */
export const ENVIRONMENT_OVERRIDES: readonly EnvironmentOverride[] = [
  { name: 'BERTH_DATA_DIR', path: ['server', 'dataDir'], description: 'data folder' },
  { name: 'BERTH_LISTEN', path: ['server', 'listen'], description: 'host:port of the API' },
  { name: 'BERTH_DATABASE_URL', path: ['database', 'url'], description: 'sqlite:PATH or mysql://…' },
  { name: 'BERTH_API_KEY', path: ['server', 'apiKey'], description: 'admin key valid for this process' },
  { name: 'BERTH_LOG_LEVEL', path: ['log', 'level'], description: 'least important level that is logged' }
]

/** Names the configuration file when --config does not; it overrides no single value, so it stands apart from the table. */
export const CONFIG_VARIABLE = 'BERTH_CONFIG'

/** A copy of this process's environment. */
export function processEnvironment (): Environment {
  return { ...process.env }
}

/** The socket on which systemd waits for the service to be ready; `undefined` when it does not wait. */
export function notifySocket (environment: Environment): string | undefined {
  return environment['NOTIFY_SOCKET'] === '' ? undefined : environment['NOTIFY_SOCKET']
}
