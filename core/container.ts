// The service container: one per application. Core fills it first, then each plugin.
import { asValue, createContainer, type AwilixContainer } from 'awilix'
import type { Cradle, ServiceKey } from './plugins/manifest.ts'

/** The services that core itself provides. A plugin reads them like any other service: by declaring the key in `requires`. */
export type CoreServices = Pick<Cradle, typeof CORE_KEYS[number]>

export const CORE_KEYS = ['log', 'database', 'events', 'jobs', 'commands', 'disk', 'apiKeys', 'authenticators', 'metrics', 'server', 'secrets', 'plugins', 'processes', 'recentLog', 'tracing'] as const satisfies readonly ServiceKey[]

/** A new container for each application; applications would share the process-wide one of @fastify/awilix. */
export function createServiceContainer (services: CoreServices): AwilixContainer {
  const container = createContainer({ injectionMode: 'PROXY', strict: true })
  for (const key of CORE_KEYS) container.register(key, asValue(services[key]))
  return container
}
