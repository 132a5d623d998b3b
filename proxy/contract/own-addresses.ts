// The addresses that this machine answers at, as the kernel has them. Node's `networkInterfaces` leaves out the interfaces without a carrier (an idle bridge, an unplugged card), to whose addresses the kernel delivers all the same.
import { readFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'

/** of this process' network namespace */
const NET = '/proc/self/net'

/** IPv4, in order: addresses, and ranges that are local as a whole, but for that of the loopback: who opens it to guests means it. @param net another folder like /proc/self/net */
export function ownV4 (net = NET): string[] {
  const text = read(`${net}/fib_trie`)
  return text === undefined ? interfaces('IPv4') : [...new Set(localIn(text))].sort()
}

/** Of both families. */
export function ownAddresses (): string[] {
  const v6 = read(`${NET}/if_inet6`)
  return [...ownV4(), ...v6 === undefined ? interfaces('IPv6') : v6.split('\n').flatMap(line => /^[0-9a-f]{32}/.exec(line)?.[0].match(/.{4}/g)?.join(':') ?? [])]
}

/** Of the table `local` alone: in others, a route may take all addresses for some packets, as transparent proxies need it. */
function localIn (trie: string): string[] {
  const found: string[] = []
  let isLocal = false
  let address = ''
  for (const line of trie.split('\n')) {
    if (!line.startsWith(' ')) isLocal = line === 'Local:'
    else if (isLocal) {
      address = /^ +\|-- ([\d.]+)$/.exec(line)?.[1] ?? address
      const length = /^ +\/(\d+) host LOCAL/.exec(line)?.[1]
      if (length === '32') found.push(address)
      else if (length !== undefined && !address.startsWith('127.')) found.push(`${address}/${length}`)
    }
  }
  return found
}

/** `undefined` where there is no such file: on another system than Linux, or in a sandbox. @throws what keeps it from being read otherwise: a shorter list would open what it must not */
function read (file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'EACCES')) return undefined
    throw error
  }
}

function interfaces (family: 'IPv4' | 'IPv6'): string[] {
  return Object.values(networkInterfaces()).flatMap(addresses => addresses ?? []).filter(own => own.family === family).map(({ address }) => address).sort()
}
