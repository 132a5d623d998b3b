// The shapes of requests and answers about published ports.
import { Type, type Static } from 'typebox'
import { listQuery } from '../../core/http/list.ts'
import { nullable, oneOf, Timestamp } from '../../core/http/schemas.ts'

const closed = { additionalProperties: false } as const
const Port = (description: string) => Type.Integer({ minimum: 1, maximum: 65_535, description })

export const PublishPort = Type.Object({
  instance_port: Port('Where the program of the instance listens'),
  host_port: Type.Optional(Port('A free one is chosen when absent')),
  address: Type.Optional(Type.String({ minLength: 7, maxLength: 15, description: 'IPv4 address of the host; 127.0.0.1 when absent, 0.0.0.0: all of its addresses' })),
  protocol: Type.Optional(oneOf(['tcp', 'udp'], { description: 'tcp when absent' }))
}, { ...closed, $id: 'PublishPort' })
export type PublishPort = Static<typeof PublishPort>

export const PortView = Type.Object({
  id: Type.String(),
  instance_id: Type.String(),
  protocol: oneOf(['tcp', 'udp']),
  address: Type.String(),
  host_port: Type.Integer(),
  instance_port: Type.Integer(),
  way: oneOf(['direct', 'relayed', 'none'], { description: 'How a new connection gets there. direct: by the rules of the host\'s kernel; relayed: by the server, which wakes the instance if it sleeps; none: not at all' }),
  problem: nullable(Type.String({ description: 'Why it is not served' })),
  created_at: Timestamp
}, { ...closed, $id: 'Port' })
export type PortView = Static<typeof PortView>

export const PortList = Type.Array(PortView)
export const ListPortsQuery = Type.Object({ ...listQuery(['created_at', 'host_port'], 'created_at') }, closed)
export type ListPortsQuery = Static<typeof ListPortsQuery>
export const PortInstanceRef = Type.Object({ id: Type.String({ minLength: 1, maxLength: 191 }) }, closed)
export const PortRef = Type.Object({ id: Type.String({ minLength: 1, maxLength: 191 }), portId: Type.String({ minLength: 1, maxLength: 191 }) }, closed)
