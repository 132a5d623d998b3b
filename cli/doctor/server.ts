// What the doctor asks a server.
import type { Api } from '../api/client.ts'
import { Refusal } from '../api/failures.ts'
import { Failure } from '../failure.ts'
import type { Capabilities, PluginView, Whoami } from '../views.ts'
import { check, type Finding } from './check.ts'

const PLUGIN_REMEDY = 'see the server\'s log, and "berth check-config"'

export async function serverFindings (api: Api): Promise<Finding[]> {
  const reached = await check('server', async () => {
    await api.call('GET', '/health')
    return { verdict: 'ok', found: `answers at ${api.target.url.origin}` }
  })
  if (reached.verdict !== 'ok') return [{ ...reached, verdict: 'failed', remedy: 'start it with "berth serve" or systemctl start berth, or name another with --url' }]
  const key = await check('key', async () => {
    try {
      const { name, scopes } = await api.call<Whoami>('GET', '/whoami')
      return { verdict: 'ok', found: `${name}, with ${scopes.join(', ')}` }
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      return { verdict: 'failed', found: error.message, remedy: error.hint ?? 'log in with "berth login"' }
    }
  })
  if (key.verdict !== 'ok') return [reached, key]
  return [reached, key, ...await runtimes(api), ...await plugins(api)]
}

async function runtimes (api: Api): Promise<Finding[]> {
  return await asked(async () => {
    const { default_runtime: { name: chosen }, runtimes } = await api.call<Capabilities>('GET', '/capabilities')
    return runtimes.map(({ name, available, acceleration, reason }): Finding => available
      ? { subject: name, verdict: acceleration === 'kvm' ? 'ok' : 'warning', found: `runs VMs${acceleration === undefined ? '' : ` with ${acceleration}`}${reason === undefined ? '' : `: ${reason}`}` }
      // Only the one that is used unless another is asked for has to be there.
      : name === chosen
        ? { subject: name, verdict: 'failed', found: reason ?? 'is not available', remedy: PLUGIN_REMEDY }
        : { subject: name, verdict: 'ok', found: `is not available: ${reason ?? 'its driver gives no reason'}` })
  })
}

async function plugins (api: Api): Promise<Finding[]> {
  return await asked(async () => (await api.call<PluginView[]>('GET', '/plugins')).map(({ id, state, reason }) => state === 'started'
    ? { subject: `plugin ${id}`, verdict: 'ok', found: 'runs' }
    : { subject: `plugin ${id}`, verdict: state === 'disabled' ? 'ok' : 'warning', found: reason == null ? state : `${state}: ${reason}`, ...state === 'disabled' ? {} : { remedy: PLUGIN_REMEDY } }))
}

/** A key that may not ask gives one finding less. */
async function asked (ask: () => Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await ask()
  } catch (error) {
    if (error instanceof Failure) return [{ subject: 'server', verdict: 'warning', found: error.message }]
    throw error
  }
}
