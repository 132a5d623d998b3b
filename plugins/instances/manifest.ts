// What the instances plugin needs and offers.
import type { DepsOf, PluginManifest } from '../../core/plugins/manifest.ts'
import { InstancesConfig } from './config.ts'
import { AGENT_ERRORS, CHANGE_ERRORS, MEMORY_ERRORS, START_ERRORS, STATE_ERRORS } from './errors.ts'

export const manifest = {
  id: 'instances',
  provides: ['instanceCopies', 'workers', 'leases', 'waking'],
  requires: ['log', 'database', 'events', 'jobs', 'commands', 'disk', 'processes', 'metrics', 'server', 'plugins', 'guest', 'images', 'hypervisors'],
  optional: ['network', 'egress', 'resources', 'volumes', 'instanceParts', 'journal'],
  emits: ['instance.state', 'instance.deleted'],
  listens: ['instance.state'],
  scopes: ['instance:read', 'instance:write', 'instance:delete', 'volume:write'],
  tags: [{ name: 'instances', description: 'Virtual machines: their life, logs, commands in them and files in and out of them', place: 10 }],
  errors: [...STATE_ERRORS, ...CHANGE_ERRORS, ...START_ERRORS, ...MEMORY_ERRORS, ...AGENT_ERRORS],
  config: InstancesConfig,
  migrations: new URL('migrations/', import.meta.url)
} as const satisfies PluginManifest<typeof InstancesConfig>

export type Deps = DepsOf<typeof manifest>
