// What is known of a published port. Types only, and how it is written.

export type Protocol = 'tcp' | 'udp'

/** An address and a port of the host. */
export interface Place {
  readonly protocol: Protocol
  /** IPv4; `0.0.0.0`: all of the host */
  readonly address: string
  readonly hostPort: number
}

export interface PublishedPort extends Place {
  readonly id: string
  readonly instanceId: string
  readonly instancePort: number
  /** epoch `ms` */
  readonly createdAt: number
}

/** `127.0.0.1:8080/tcp` */
export function placeText ({ address, hostPort, protocol }: Place): string {
  return `${address}:${hostPort}/${protocol}`
}
