// Waits until a service has the state that its dependents need, or whoever called `up`.
import { setTimeout as delay } from 'node:timers/promises'
import type { Api } from '../api/client.ts'
import { path } from '../api/path.ts'
import { EXIT } from '../exit-codes.ts'
import { Failure } from '../failure.ts'
import type { Session } from '../session.ts'
import type { Instance } from '../views.ts'
import type { Condition } from './model.ts'

/** `up`: it runs, or has done its work. Other than with `service_started`, one that has crashed is not meant. */
type Awaited = Condition | 'up'

const EVERY_MS = 300
const MOST_MS = 600_000

export async function waitFor (session: Session, api: Api, instance: string, condition: Awaited): Promise<void> {
  const deadline = performance.now() + MOST_MS
  while (true) {
    const found = await api.call<Instance>('GET', path`/instances/${instance}`)
    if (isMet(found, condition)) break
    if (performance.now() > deadline) throw new Failure(`${instance} is not ${WORDS[condition]} after ${MOST_MS / 60_000} minutes`, { exitCode: EXIT.timeout, hint: `berth logs ${instance}` })
    session.progress.step(`waiting until ${instance} is ${WORDS[condition]}`)
    await delay(EVERY_MS, undefined, { signal: session.interrupted })
  }
  session.progress.end()
}

const WORDS: Readonly<Record<Awaited, string>> = { up: 'running', service_started: 'running', service_healthy: 'healthy', service_completed_successfully: 'done' }

/** @throws when it can no longer reach that state by itself */
export function isMet (instance: Instance, condition: Awaited): boolean {
  const { name, state, exit_code: code, health_status: health, restart_policy: restart } = instance
  if (state === 'Unknown') throw new Failure(`${name} is Unknown${instance.state_error == null ? '' : `: ${instance.state_error}`}`, { hint: `berth logs ${name}` })
  // An instance in standby has had the wanted state before.
  if (condition === 'service_started') return ['Running', 'Standby', 'Stopped'].includes(state)
  if (condition === 'service_healthy') {
    if (isOver(instance)) throw new Failure(`${name} has ended${code == null ? '' : ` with exit code ${code}`}, and is not healthy`, { hint: `berth logs ${name}` })
    if (health?.status === 'unhealthy' && (restart?.policy ?? 'never') === 'never') throw new Failure(`${name} is unhealthy${health.last_error == null ? '' : `: ${health.last_error}`}`, { hint: `berth logs ${name}` })
    return state === 'Standby' || health?.status === 'healthy'
  }
  if (condition === 'up' && (state === 'Running' || state === 'Standby')) return true
  if (state === 'Stopped' && code === 0 && (condition === 'service_completed_successfully' || isOver(instance))) return true
  if (isOver(instance)) throw new Failure(`${name} has ended with ${code == null ? 'no exit code' : `exit code ${code}`}`, { hint: `berth logs ${name}` })
  return false
}

/** Whether it has ended and is not started again by itself. */
function isOver ({ state, exit_code: code, restart_policy: restart, restart_status: status }: Instance): boolean {
  if (state !== 'Stopped') return false
  const policy = restart?.policy ?? 'never'
  // A program that its health check has ended is started again, whatever its exit code.
  return policy === 'never' || status?.blocked_reason != null || (policy === 'on_failure' && code === 0 && status?.next_attempt_at == null)
}
