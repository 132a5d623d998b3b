// Decides whether the address of a name from a user or another server may be dialled: the name is resolved once, judged by the egress proxy's rules, and pinned.
import { lookup as lookUp } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import { readFile } from 'node:fs/promises'
import { isIP, type LookupFunction } from 'node:net'
import { hasCode } from '../errors/system-code.ts'
import { readHosts } from '../../proxy/contract/hosts-file.ts'
import { embeddedV4, isMetadata } from '../../proxy/contract/ranges.ts'
import { createVet, isMetadataName } from '../../proxy/contract/vet.ts'

export interface Endpoint { readonly host: string, readonly port: number }

export interface AddressRules {
  /** private ranges that may be dialled */
  readonly allowPrivate: readonly string[]
  /** hosts that the operator has named, `host` or `host:port`: any address is allowed but that of a metadata service */
  readonly trusted: readonly string[]
  /** the key of the configuration that allows private ranges */
  readonly setting: string
}

/** Resolves a host to its addresses, all of which may be dialled. @throws AddressRefused, or the error of DNS */
export type ResolveHost = (endpoint: Endpoint) => Promise<readonly string[]>

/** An address that this server must not dial. The message does not name the address: it could reveal an inner network. */
export class AddressRefused extends Error {
  override readonly name = 'AddressRefused'
  readonly endpoint: string

  constructor ({ host, port }: Endpoint, setting: string) {
    super(`${host}:${port} is at an address that this server does not dial: a private one, its own, or a metadata service; ${setting} opens networks`)
    this.endpoint = `${host}:${port}`
  }
}

const DNS_TIMEOUT_MS = 5_000
const DNS_TRIES = 2
const HOSTS_FILE = '/etc/hosts'
const ABSENT = ['ENODATA', 'ENOTFOUND', 'ENONAME']

export function createResolveHost (rules: AddressRules): ResolveHost {
  const vet = createVet({ allow: rules.allowPrivate, deny: [] }, () => false)
  return async (endpoint) => {
    const host = endpoint.host.replace(/^\[(.*)\]$/, '$1')
    if (isMetadataName(host)) throw new AddressRefused(endpoint, rules.setting)
    const addresses = isIP(host) === 0 ? await addressesOf(host) : [host]
    const isTrusted = rules.trusted.includes(endpoint.host) || rules.trusted.includes(`${endpoint.host}:${endpoint.port}`)
    // One bad address refuses the host: a server that mixes them wants to be asked again until the bad one is used.
    if (addresses.some((address) => isTrusted ? isMetadata(embeddedV4(address) ?? address) : vet(address) !== undefined)) throw new AddressRefused(endpoint, rules.setting)
    return addresses
  }
}

/** For `net.connect` and the like: the name resolves to these addresses and no others. */
export function pinned (addresses: readonly string[]): LookupFunction {
  const entries = addresses.map((address) => ({ address, family: isIP(address) }))
  return (_name, options, callback) => {
    const [first] = entries
    if (options.all === true) callback(null, entries)
    else if (first === undefined) lookUp('', callback)
    else callback(null, first.address, first.family)
  }
}

// Not the system's own function: while a name server is silent, it blocks one of the few threads with which this server reads its files.
async function addressesOf (name: string): Promise<readonly string[]> {
  const written = await writtenAddresses(name)
  if (written.length > 0) return written
  const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: DNS_TRIES })
  const [v4, v6] = await Promise.all([resolver.resolve4(name).catch(noneIfAbsent), resolver.resolve6(name).catch(noneIfAbsent)])
  if (v4.length + v6.length === 0) throw new Error(`no such host: ${name}`)
  return [...v4, ...v6]
}

async function writtenAddresses (name: string): Promise<readonly string[]> {
  const text = await readFile(HOSTS_FILE, 'utf8').catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return ''
    throw error
  })
  return readHosts(text).get(name.toLowerCase()) ?? []
}

function noneIfAbsent (error: unknown): string[] {
  if (hasCode(error, ...ABSENT)) return []
  throw error
}
