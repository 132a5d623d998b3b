// A published port as the API shows it.
import type { PublishedPort } from './record.ts'
import type { PortView } from './schemas.ts'

export function portView ({ id, instanceId, protocol, address, hostPort, instancePort, createdAt }: PublishedPort, way: PortView['way'], problem: string | undefined): PortView {
  return {
    id,
    instance_id: instanceId,
    protocol,
    address,
    host_port: hostPort,
    instance_port: instancePort,
    way,
    problem: problem ?? null,
    created_at: new Date(createdAt).toISOString()
  }
}
