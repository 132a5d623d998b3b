// Parses which local port leads to which remote port: `[ADDRESS:]LOCAL:REMOTE`; an empty LOCAL is any free one, and one number is both.
import { wrongUsage } from '../failure.ts'

export interface Mapping { readonly address: string, readonly local: number, readonly remote: number }

const LOOPBACK = '127.0.0.1'

export function mappingOf (text: string): Mapping {
  const parts = text.split(':')
  const remote = portOf(parts.pop(), 1)
  const local = parts.length === 0 ? remote : portOf(parts.pop() || '0', 0)
  const address = parts.length === 0 ? LOOPBACK : parts.join(':').replace(/^\[(.*)\]$/, '$1')
  if (remote === undefined || local === undefined || address === '') throw wrongUsage(`${text} is not [ADDRESS:]LOCAL:REMOTE`, 'write it like 8080:80')
  return { address, local, remote }
}

function portOf (text: string | undefined, least: number): number | undefined {
  const port = text !== undefined && /^\d{1,5}$/.test(text) ? Number(text) : NaN
  return port >= least && port <= 65_535 ? port : undefined
}
