// Expiry, restarts, health check and auto-standby, from the options that `run`, `create` and `update` share.
import { wrongUsage } from './failure.ts'
import type { Input } from './input.ts'

/** Fields whose options were not given are absent. */
export function lifeOf (input: Input): Record<string, unknown> {
  const restart = restartOf(input)
  const health = healthOf(input)
  const ttl = input.text('ttl')
  const idle = input.text('autoStandby')
  const autoStandby = idle === 'off' ? { enabled: false } : { enabled: true, idle_timeout: idle }
  return { ...ttl === undefined ? {} : { ttl }, ...idle === undefined ? {} : { auto_standby: autoStandby }, ...restart === undefined ? {} : { restart_policy: restart }, ...health === undefined ? {} : { health_check: health } }
}

function restartOf (input: Input): object | undefined {
  const policy = input.text('restart')
  const details = { max_attempts: input.integer('restartAttempts'), backoff: input.text('restartBackoff') }
  if (policy === undefined && Object.values(details).some((value) => value !== undefined)) throw wrongUsage('--restart-… goes with --restart')
  return policy === undefined ? undefined : { policy: policy.replace('-', '_'), ...details }
}

function healthOf (input: Input): object | undefined {
  const kind = kindOf(input)
  const details = { interval: input.text('healthInterval'), timeout: input.text('healthTimeout'), failure_threshold: input.integer('healthRetries'), start_period: input.text('healthStartPeriod') }
  if (kind === undefined && Object.values(details).some((value) => value !== undefined)) throw wrongUsage('--health-… goes with --health-cmd, --health-http or --health-tcp')
  return kind === undefined ? undefined : { ...kind, ...details }
}

function kindOf (input: Input): object | undefined {
  const [command, http, tcp] = [input.text('healthCmd'), input.text('healthHttp'), input.integer('healthTcp')]
  if ([command, http, tcp].filter((value) => value !== undefined).length > 1) throw wrongUsage('--health-cmd, --health-http and --health-tcp do not go together')
  if (http !== undefined) return { type: 'http', http: requestOf(http) }
  if (tcp !== undefined) return { type: 'tcp', tcp: { port: tcp } }
  if (command === undefined) return undefined
  return command === 'none' ? { type: 'none' } : { type: 'exec', exec: { command: ['/bin/sh', '-c', command] } }
}

function requestOf (text: string): object {
  const slash = text.indexOf('/')
  const port = Number(slash === -1 ? text : text.slice(0, slash))
  if (!Number.isInteger(port) || port < 1 || port > 65535) throw wrongUsage(`--health-http: "${text}" does not begin with a port, as 8080/ready does`)
  return { port, ...slash === -1 ? {} : { path: text.slice(slash) } }
}
