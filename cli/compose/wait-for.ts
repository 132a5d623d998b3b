// Waits until a service has the state that its dependents need.
import { setTimeout as delay } from 'node:timers/promises'
import type { Api } from '../api/client.ts'
import { path } from '../api/path.ts'
import { EXIT } from '../exit-codes.ts'
import { Failure } from '../failure.ts'
import type { Session } from '../session.ts'
import type { Instance } from '../views.ts'
import type { Condition } from './model.ts'

const EVERY_MS = 300
const MOST_MS = 600_000

export async function waitFor (session: Session, api: Api, instance: string, condition: Condition): Promise<void> {
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

const WORDS: Readonly<Record<Condition, string>> = { service_started: 'running', service_healthy: 'healthy', service_completed_successfully: 'done' }

/** @throws when it can no longer reach that state */
export function isMet ({ name, state, exit_code: code, health_status: health, restart_policy: restart }: Instance, condition: Condition): boolean {
  const isOver = state === 'Stopped' && (restart?.policy ?? 'never') === 'never'
  // An instance in standby has had the wanted state before.
  if (condition === 'service_started') return ['Running', 'Standby', 'Stopped'].includes(state)
  if (condition === 'service_healthy') {
    if (isOver) throw new Failure(`${name} has ended${code == null ? '' : ` with exit code ${code}`}, and is not healthy`, { hint: `berth logs ${name}` })
    if (health?.status === 'unhealthy' && (restart?.policy ?? 'never') === 'never') throw new Failure(`${name} is unhealthy${health.last_error == null ? '' : `: ${health.last_error}`}`, { hint: `berth logs ${name}` })
    return state === 'Standby' || health?.status === 'healthy'
  }
  if (state === 'Stopped' && code === 0) return true
  if (isOver) throw new Failure(`${name} has ended with ${code == null ? 'no exit code' : `exit code ${code}`}`, { hint: `berth logs ${name}` })
  return false
}
