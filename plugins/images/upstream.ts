// How skopeo is let into the registry of one image: which address, which login, which trust. Logins go through a 0600 file only.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { RegistrySource } from '../registry/contract.ts'
import type { RegistryCredentials } from './contract.ts'
import { PullFailure } from './failures.ts'
import { LOCAL_DOMAIN } from './reference.ts'
import { openTokenRelay } from './token-relay.ts'

export interface Upstream {
  /** the repository as skopeo must write it: `docker.io/library/alpine`, `127.0.0.1:8080/myapp` */
  readonly repository: string
  readonly authFile: string
  readonly tlsVerify: boolean
  /** never to be shown */
  readonly secrets: readonly string[]
  close (): Promise<void>
}

export interface UpstreamSettings {
  readonly insecureRegistries: readonly string[]
  readonly credentialsFile: string | undefined
  /** the built-in registry, when it runs */
  readonly registry: RegistrySource | undefined
}

export interface OpenUpstream {
  /** `domain/path`, normalised */
  readonly repository: string
  readonly credentials: RegistryCredentials | undefined
  /** private folder for the login file */
  readonly folder: string
  readonly signal: AbortSignal
}

interface Login { readonly host: string, readonly username: string, readonly password: string }

/** Opens the way to a repository; close it when done. */
export async function openUpstream (settings: UpstreamSettings, options: OpenUpstream): Promise<Upstream> {
  const slash = options.repository.indexOf('/')
  const domain = options.repository.slice(0, slash)
  const path = options.repository.slice(slash + 1)
  if (domain === LOCAL_DOMAIN) return openLocal(settings, options, path)
  const insecure = settings.insecureRegistries.includes(domain) || settings.insecureRegistries.includes(withoutPort(domain)) || isLoopback(domain)
  const { username, password, registryToken } = options.credentials ?? {}
  if (registryToken !== undefined) return openWithToken(options, { domain, path, token: registryToken, insecure })
  const login = username === undefined || password === undefined ? undefined : { host: domain, username, password }
  return {
    repository: options.repository,
    authFile: await writeLogins(options.folder, login === undefined ? await serverLogins(settings) : loginFile(login)),
    tlsVerify: !insecure,
    secrets: password === undefined ? [] : [password],
    close: async () => {}
  }
}

async function openLocal (settings: UpstreamSettings, options: OpenUpstream, path: string): Promise<Upstream> {
  if (settings.registry === undefined) throw new PullFailure('unreachable', 'the built-in registry is not enabled on this server')
  const access = await settings.registry.access(options.signal)
  const { endpoint, username, password } = access
  return {
    repository: `${endpoint}/${path}`,
    authFile: await writeLogins(options.folder, loginFile({ host: endpoint, username, password })),
    tlsVerify: false,
    secrets: [password],
    close: async () => access.revoke()
  }
}

interface TokenTarget { readonly domain: string, readonly path: string, readonly token: string, readonly insecure: boolean }

async function openWithToken (options: OpenUpstream, target: TokenTarget): Promise<Upstream> {
  const host = target.domain === 'docker.io' ? 'registry-1.docker.io' : target.domain
  const relay = await openTokenRelay({ host, token: target.token, insecure: target.insecure })
  return {
    repository: `${relay.endpoint}/${target.path}`,
    authFile: await writeLogins(options.folder, loginFile({ host: relay.endpoint, username: relay.username, password: relay.password })),
    tlsVerify: false,
    secrets: [target.token, relay.password],
    close: () => relay.close()
  }
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

// Written always, even empty: without it skopeo would use the logins of whoever started the server.
async function writeLogins (folder: string, content: string): Promise<string> {
  const file = join(folder, 'auth.json')
  await writeFile(file, content, { mode: 0o600 })
  return file
}

function withoutPort (host: string): string {
  return host.replace(/:\d+$/, '')
}

/** Whether a registry host is this machine's loopback, which may speak plain HTTP, as docker has it. */
export function isLoopback (domain: string): boolean {
  const host = withoutPort(domain)
  return host === 'localhost' || host === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(host)
}
