// How skopeo accesses the registry of one image: which address, which login, which trust. Logins are passed only in a 0600 file.
import { randomUUID } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { LOCAL_DOMAIN } from '../../core/library/oci/reference.ts'
import type { RegistrySource } from '../registry/contract.ts'
import type { LocalRegistry, OpenRegistry, RegistryAccess } from './contract.ts'
import { PullFailure } from './failures.ts'
import { openTokenRelay } from './token-relay.ts'
import { AddressRefused, pinned, type Endpoint, type ResolveHost } from '../../core/library/addresses.ts'

export interface UpstreamSettings {
  readonly insecureRegistries: readonly string[]
  readonly credentialsFile: string | undefined
  /** the built-in registry, when it is enabled */
  readonly registry: RegistrySource | undefined
  readonly resolve: ResolveHost
}

interface Login { readonly host: string, readonly username: string, readonly password: string }

/** Opens access to a repository; must be closed. */
export async function openUpstream (settings: UpstreamSettings, options: OpenRegistry): Promise<RegistryAccess> {
  const slash = options.repository.indexOf('/')
  const domain = options.repository.slice(0, slash)
  const path = options.repository.slice(slash + 1)
  if (domain === LOCAL_DOMAIN) return openLocal(settings, options, path)
  const insecure = settings.insecureRegistries.includes(domain) || settings.insecureRegistries.includes(withoutPort(domain)) || isLoopback(domain) || options.insecure === true
  const { username, password, registryToken } = options.credentials ?? {}
  if (registryToken !== undefined) return await openWithToken(settings, options, { domain, path, token: registryToken, insecure })
  const local = isThisHost(domain) ? localRegistry(domain) : undefined
  const host = local?.alias ?? domain
  const logins = username === undefined || password === undefined ? renamed(await serverLogins(settings), local) : loginFile({ host, username, password })
  return {
    repository: `${host}/${path}`,
    ...local === undefined ? {} : { local },
    authFile: await writeLogins(options.folder, logins),
    tlsVerify: !insecure,
    secrets: secretsIn(logins),
    close: async () => {}
  }
}

async function openLocal (settings: UpstreamSettings, options: OpenRegistry, path: string): Promise<RegistryAccess> {
  if (settings.registry === undefined) throw new PullFailure('unreachable', 'the built-in registry is not enabled on this server')
  const access = await settings.registry.access(options.signal, options.purpose)
  const { endpoint, username, password } = access
  const local = localRegistry(endpoint)
  return {
    repository: `${local.alias}/${path}`,
    local,
    authFile: await writeLogins(options.folder, loginFile({ host: local.alias, username, password })),
    tlsVerify: false,
    secrets: [password],
    close: async () => access.revoke()
  }
}

interface TokenTarget { readonly domain: string, readonly path: string, readonly token: string, readonly insecure: boolean }

async function openWithToken ({ resolve }: UpstreamSettings, options: OpenRegistry, target: TokenTarget): Promise<RegistryAccess> {
  const host = target.domain === 'docker.io' ? 'registry-1.docker.io' : target.domain
  const addresses = isThisHost(target.domain) ? [] : await resolve(endpointOf(host)).catch((error: unknown) => { throw unreachable(error, host) })
  const relay = await openTokenRelay({
    host, token: target.token, insecure: target.insecure, writes: options.purpose === 'write', ...addresses.length === 0 ? {} : { lookup: pinned(addresses) }
  })
  const local = { ...localRegistry(relay.endpoint), name: target.domain }
  return {
    repository: `${local.alias}/${target.path}`,
    local,
    authFile: await writeLogins(options.folder, loginFile({ host: local.alias, username: relay.username, password: relay.password })),
    tlsVerify: false,
    secrets: [target.token, relay.password],
    close: () => relay.close()
  }
}

function unreachable (error: unknown, host: string): PullFailure {
  if (error instanceof AddressRefused) return new PullFailure('address-refused', error.message, error)
  return new PullFailure('unreachable', `the registry ${host} cannot be found`, error)
}

function endpointOf (domain: string): Endpoint {
  const { hostname, port } = new URL(`https://${domain}`)
  return { host: hostname, port: port === '' ? 443 : Number(port) }
}

/** A registry of this host, for which tools use an alias: in their network, loopback is their own. Nobody owns the domain `invalid` (RFC 2606). */
function localRegistry (domain: string): LocalRegistry {
  const { hostname, port } = new URL(`ws://${domain}`)
  const alias = `at-${hostname.replace(/^\[(.*)\]$/, '$1').replaceAll(/[^a-z0-9]+/g, '-')}.berth.invalid`
  // Without a port: the ports of HTTPS and of HTTP.
  const ports = withoutPort(domain) === domain ? [443, 80] : [port === '' ? 80 : Number(port)]
  return {
    alias: withoutPort(domain) === domain ? alias : `${alias}:${ports.join()}`,
    name: domain,
    endpoints: ports.map((each) => [`${alias}:${each}`, { host: hostname, port: each }])
  }
}

/** The server's logins; the login for a registry of this host is under its alias. */
function renamed (logins: string, local: LocalRegistry | undefined): string {
  const parsed = local === undefined ? undefined : parse(logins)
  if (local === undefined || !Value.Check(LoginFile, parsed)) return logins
  const login = parsed.auths[local.name]
  return login === undefined ? logins : JSON.stringify({ ...parsed, auths: { ...parsed.auths, [local.alias]: login } })
}

async function serverLogins (settings: UpstreamSettings): Promise<string> {
  if (settings.credentialsFile === undefined) return '{}'
  try {
    return await readFile(settings.credentialsFile, 'utf8')
  } catch (error) {
    throw new PullFailure('tool', 'the file named by credentialsFile cannot be read', error)
  }
}

function loginFile (login: Login): string {
  const auth = Buffer.from(`${login.username}:${login.password}`).toString('base64')
  return JSON.stringify({ auths: { [login.host]: { auth } } })
}

const LoginFile = Type.Object({ auths: Type.Record(Type.String(), Type.Object({ auth: Type.Optional(Type.String()) })) })

// Registries see them in both forms, and their answers are reported.
function secretsIn (logins: string): string[] {
  const parsed = parse(logins)
  if (!Value.Check(LoginFile, parsed)) return []
  return Object.values(parsed.auths).flatMap(({ auth }) => {
    if (auth === undefined) return []
    const plain = Buffer.from(auth, 'base64').toString()
    return [auth, plain.slice(plain.indexOf(':') + 1)]
  })
}

// skopeo reports a file that is not JSON.
function parse (text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

// Always written, even empty: without it skopeo would use the logins of the user who started the server.
async function writeLogins (folder: string, content: string): Promise<string> {
  const file = join(folder, `login-${randomUUID()}.json`)
  await writeFile(file, content, { mode: 0o600, flag: 'wx' })
  return file
}

function withoutPort (host: string): string {
  return host.replace(/:\d+$/, '')
}

// In any spelling; this does not decide about trust.
function isThisHost (domain: string): boolean {
  return isLoopback(domain.toLowerCase())
}

/** Whether a registry host is this machine's loopback, which may speak plain HTTP, as docker has it. */
function isLoopback (domain: string): boolean {
  const host = withoutPort(domain)
  return host === 'localhost' || host === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(host)
}
