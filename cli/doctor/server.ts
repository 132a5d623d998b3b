// The doctor's checks of a server.
import type { Api } from '../api/client.ts'
import { Refusal } from '../api/failures.ts'
import { Failure } from '../failure.ts'
import type { Capabilities, HostChecks, PluginView, Whoami } from '../views.ts'
import { check, type Finding } from '../../core/library/host-checks/check.ts'

const PLUGIN_REMEDY = 'see the server\'s log, and "berth check-config"'

/** What this command says of a server itself. */
const SAID_ALREADY = ['database', 'plugins']

/**
 * @param here what was found of this host: where the server finds the same, that is not said twice
 * @param connect fails when the server cannot be chosen, for example because the file of contexts is refused
 */
export async function serverFindings (here: readonly Finding[], connect: () => Promise<Api>): Promise<Finding[]> {
  let api: Api
  try {
    api = await connect()
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return [{ subject: 'server', verdict: 'failed', found: error.message, ...error.hint === undefined ? {} : { remedy: error.hint } }]
  }
  const [reached, ...database] = await health(api)
  if (reached.verdict !== 'ok') return [reached]
  const key = await check('key', async () => {
    try {
      const { name, scopes } = await api.call<Whoami>('GET', '/whoami')
      return { verdict: 'ok', found: `${name}, with ${scopes.join(', ')}` }
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      return { verdict: 'failed', found: error.message, remedy: error.hint ?? 'log in with "berth login"' }
    }
  })
  if (key.verdict !== 'ok') return [reached, ...database, key]
  return [reached, ...database, key, ...await runtimes(api), ...await plugins(api), ...await itsHost(api, here)]
}

/** When the server answers that it is unhealthy, it is reachable, but its database is not. */
async function health (api: Api): Promise<[Finding, ...Finding[]]> {
  const answers: Finding = { subject: 'server', verdict: 'ok', found: `answers at ${api.target.url.origin}` }
  try {
    await api.call('GET', '/health', { withoutKey: true })
    return [answers, { subject: 'database', verdict: 'ok', found: 'answers' }]
  } catch (error) {
    if (error instanceof Refusal && error.status === 503 && error.code !== 'not_berth') return [answers, { subject: 'database', verdict: 'failed', found: error.message, remedy: 'see the server\'s log; a full disk, or a database on another host that is not reached' }]
    if (!(error instanceof Failure)) throw error
    return [{ subject: 'server', verdict: 'failed', found: error.message, remedy: 'start it with "berth serve" or systemctl start berth, or name another with --url' }]
  }
}

async function runtimes (api: Api): Promise<Finding[]> {
  return await asked(async () => {
    const { default_runtime: { name: chosen }, runtimes } = await api.call<Capabilities>('GET', '/capabilities')
    return runtimes.map(({ name, available, acceleration, reason }): Finding => available
      ? { subject: name, verdict: acceleration === 'kvm' ? 'ok' : 'warning', found: `runs VMs${acceleration === undefined ? '' : ` with ${acceleration}`}${reason === undefined ? '' : `: ${reason}`}` }
      // Only the default runtime has to be available.
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

async function itsHost (api: Api, here: readonly Finding[]): Promise<Finding[]> {
  return await asked(async () => {
    const { checks } = await api.call<HostChecks>('GET', '/host/checks').catch((error: unknown) => {
      // Turned off, or a server of before.
      if (error instanceof Refusal && error.status === 404 && error.code !== 'not_berth') return { checks: [] }
      throw error
    })
    const isNew = ({ subject, found }: Finding): boolean => !SAID_ALREADY.includes(subject) && !here.some((each) => each.subject === subject && each.found === found)
    return checks.filter(isNew).map((finding) => ({ ...finding, subject: `${finding.subject} there` }))
  })
}

/** A request that fails gives one warning instead of its findings. */
async function asked (ask: () => Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await ask()
  } catch (error) {
    if (error instanceof Failure) return [{ subject: 'server', verdict: 'warning', found: error.message }]
    throw error
  }
}
