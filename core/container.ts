// The service container: one per application, filled by core first and then with what each plugin creates.
import { asValue, createContainer, type AwilixContainer } from 'awilix'
import type { Cradle, ServiceKey } from './plugins/manifest.ts'

/** The services that core itself provides. Plugins read them like any other key: by declaring it in `requires`. */
export type CoreServices = Pick<Cradle, typeof CORE_KEYS[number]>

export const CORE_KEYS = ['log', 'database', 'events', 'jobs', 'commands', 'disk', 'apiKeys', 'authenticators', 'metrics', 'server', 'secrets', 'plugins', 'tracing'] as const satisfies readonly ServiceKey[]

/** A container of its own for each application; the process-wide one of @fastify/awilix would be shared between applications. */
export function createServiceContainer (services: CoreServices): AwilixContainer {
  const container = createContainer({ injectionMode: 'PROXY', strict: true })
  for (const key of CORE_KEYS) container.register(key, asValue(services[key]))
  return container
}
