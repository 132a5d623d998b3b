// Expiry, restarts and health check out of the options that `run`, `create` and `update` share.
import { wrongUsage } from './failure.ts'
import type { Input } from './input.ts'

/** Fields that were not asked for are absent. */
export function lifeOf (input: Input): Record<string, unknown> {
  const restart = restartOf(input)
  const health = healthOf(input)
  const ttl = input.text('ttl')
  return { ...ttl === undefined ? {} : { ttl }, ...restart === undefined ? {} : { restart_policy: restart }, ...health === undefined ? {} : { health_check: health } }
}

function restartOf (input: Input): object | undefined {
  const policy = input.text('restart')
  const details = { max_attempts: input.integer('restartAttempts'), backoff: input.text('restartBackoff') }
  if (policy === undefined && Object.values(details).some((value) => value !== undefined)) throw wrongUsage('--restart-… goes with --restart')
  return policy === undefined ? undefined : { policy: policy.replace('-', '_'), ...details }
}

function healthOf (input: Input): object | undefined {
  const command = input.text('healthCmd')
  const details = { interval: input.text('healthInterval'), timeout: input.text('healthTimeout'), failure_threshold: input.integer('healthRetries'), start_period: input.text('healthStartPeriod') }
  if (command === undefined && Object.values(details).some((value) => value !== undefined)) throw wrongUsage('--health-… goes with --health-cmd')
  if (command === undefined) return undefined
  return command === 'none' ? { type: 'none' } : { type: 'exec', exec: { command: ['/bin/sh', '-c', command] }, ...details }
}
