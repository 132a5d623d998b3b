// Published ports of the host, as people write them: `-p` of `run` and `create`, `ports` of a Compose file.
import { wrongUsage } from './failure.ts'
import type { PublishedPort } from './views.ts'

export const PORT_RULE = '[[ADDRESS:]PORT:]INSTANCE_PORT[/udp]'

/** The API's form of `-p`. `what` is the option or argument that contained it. */
export function portOf (text: string, what = '--publish'): object {
  const port = readPort(text)
  if (port === undefined) throw wrongUsage(`${what}: ${text} is not ${PORT_RULE}`, 'write it like 8080:80, 127.0.0.1:8080:80/tcp or 53/udp')
  return port
}

/** `8080:80`, `127.0.0.1:8080:80/tcp`, `127.0.0.1::80`, `53/udp`; without a port of the host, the server chooses one. Undefined for any other form. */
export function readPort (text: string): object | undefined {
  const [places = '', protocol, ...more] = text.split('/')
  const parts = places.split(':')
  const instancePort = parts.pop() ?? ''
  const hostPort = parts.pop() ?? ''
  const [address = '', ...others] = parts
  const isKnown = isPort(instancePort) && (hostPort === '' || isPort(hostPort)) && others.length === 0 && more.length === 0 && (protocol === undefined || protocol === 'tcp' || protocol === 'udp')
  if (!isKnown) return undefined
  return { instance_port: Number(instancePort), ...hostPort === '' ? {} : { host_port: Number(hostPort) }, ...address === '' ? {} : { address }, ...protocol === undefined ? {} : { protocol } }
}

/** @example `127.0.0.1:8080->80/tcp` */
export function portText ({ address, host_port: from, instance_port: to, protocol }: PublishedPort): string {
  return `${address}:${from}->${to}/${protocol}`
}

/** The ports that a text names: an id, or `[ADDRESS:]PORT[/udp]` of the host. */
export function namedPorts (ports: readonly PublishedPort[], text: string): PublishedPort[] {
  const [place = '', protocol] = text.split('/')
  const at = place.lastIndexOf(':')
  const [address, port] = [at < 0 ? undefined : place.slice(0, at), place.slice(at + 1)]
  return ports.filter((each) => each.id === text || (String(each.host_port) === port && (protocol ?? each.protocol) === each.protocol && (address ?? each.address) === each.address))
}

function isPort (text: string): boolean {
  return /^\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535
}
