// Every command of the client, in the order of the help.
import type { Section } from '../spec.ts'
import { COMPOSE_COMMANDS } from './compose.ts'
import { INSTANCE_COMMANDS } from './instances.ts'
import { IMAGE_COMMANDS, SNAPSHOT_COMMANDS, STORAGE_COMMANDS } from './objects.ts'
import { CONNECTION_COMMANDS, SERVER_VIEW_COMMANDS } from './server.ts'
import { INGRESS_COMMANDS, PORT_COMMANDS } from './ways-in.ts'

export const SECTIONS: readonly Section[] = [
  { title: 'Instances', commands: INSTANCE_COMMANDS },
  { title: 'Ways in', commands: [...PORT_COMMANDS, ...INGRESS_COMMANDS] },
  { title: 'Compose files', commands: COMPOSE_COMMANDS },
  { title: 'Images', commands: IMAGE_COMMANDS },
  { title: 'Snapshots', commands: SNAPSHOT_COMMANDS },
  { title: 'Volumes and devices', commands: STORAGE_COMMANDS },
  { title: 'Server', commands: SERVER_VIEW_COMMANDS },
  { title: 'Connection', commands: CONNECTION_COMMANDS }
]

export const GROUPS: Readonly<Record<string, string>> = {
  'auto-standby': 'instances that sleep by themselves', ports: 'ports of the host that lead to instances', ingress: 'host names that lead to programs in instances', compose: 'instances that a Compose file describes', image: 'images', builds: 'builds that were made', snapshot: 'kept states of instances', 'snapshot schedule': 'snapshots that are taken regularly', volume: 'volumes', device: 'PCI devices', webhook: 'addresses that are told what changes', key: 'keys of the API', context: 'servers that were logged in to'
}
