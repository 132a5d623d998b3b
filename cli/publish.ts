// Ports of the host that lead to an instance's, as people write them: `-p` of `run` and `create`, `ports` of a Compose file.
import { wrongUsage } from './failure.ts'

export const PORT_RULE = '[[ADDRESS:]PORT:]INSTANCE_PORT[/udp]'

/** What `-p` asks the API for. */
export function portOf (text: string): object {
  const port = readPort(text)
  if (port === undefined) throw wrongUsage(`--publish: ${text} is not ${PORT_RULE}`, 'write it like 8080:80, 127.0.0.1:8080:80/tcp or 53/udp')
  return port
}

/** `8080:80`, `127.0.0.1:8080:80/tcp`, `127.0.0.1::80`, `53/udp`; without a port of the host, one is chosen. Undefined when it is none of these. */
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

function isPort (text: string): boolean {
  return /^\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535
}
