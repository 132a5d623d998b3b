// A real berth-egress process for a test, with its configuration, its control socket and the ways to reach it.
import { spawn, type ChildProcess } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { eventually } from '../../helpers/eventually.ts'
import type { AuditEntry, InjectRule, PolicyRevision, VmPolicy } from '../../../proxy/contract/control.ts'
import { freePort } from '../../helpers/free-port.ts'
import { loopback } from './network.ts'

export interface ProxyOptions {
  readonly roots: readonly string[]
  /** DNS server; with `system` it is the one that resolv.conf names */
  readonly resolver: string
  /** port of all origins over TLS */
  readonly httpsPort: number
  readonly httpPort: number
  /** ports that guests mean, for a listener each beside the two */
  readonly further?: ReadonlyArray<{ readonly kind: 'http' | 'https', readonly port: number }>
  /** processes that VMs are divided between; 2 without it */
  readonly workers?: number
  /** main.js of another build, which may know nothing of workers */
  readonly program?: string
  readonly limits?: Readonly<Record<string, number>>
  readonly allowPrivate?: readonly string[]
  readonly deny?: readonly string[]
  readonly ipv6?: boolean
  /** whether another program holds its sockets, as systemd does */
  readonly held?: boolean
  /** of an earlier proxy, whose files this one goes on with */
  readonly folder?: string
  /** files that the proxy sees as /etc/resolv.conf and /etc/hosts; its configuration names no DNS server then */
  readonly system?: { readonly resolvConf: string, readonly hosts: string }
  /** for the node that runs it, such as --cpu-prof */
  readonly nodeOptions?: readonly string[]
}

export interface ProxyAnswer {
  readonly status: number
  readonly body: string
}

export interface TestProxy {
  readonly address: string
  readonly ports: { readonly http: number, readonly https: number, readonly dns: number, readonly further: readonly number[] }
  readonly folder: string
  readonly process: ChildProcess
  /** everything that it wrote to its own log */
  readonly output: () => string
  readonly ca: () => Promise<string>
  call (method: string, path: string, body?: unknown): Promise<ProxyAnswer>
  /** Puts a whole revision with these VMs; numbers go up by themselves. */
  policy (...vms: readonly VmPolicy[]): Promise<void>
  audit (vm: string, after?: number): Promise<AuditEntry[]>
  /** The audit entries once `enough` says so. */
  audited (vm: string, enough: (entries: readonly AuditEntry[]) => boolean): Promise<AuditEntry[]>
  /** Ends it and removes its files. */
  stop (): Promise<void>
}

// Made once for all proxies of a file; the certificate for it is made by each.
const proxyKeyPem = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' })

const HOLDER = fileURLToPath(new URL('./socket-holder.js', import.meta.url))
const MAIN = fileURLToPath(new URL('../../../proxy/main.js', import.meta.url))

/** Starts the proxy and waits until its control socket answers. */
export async function startProxy (options: ProxyOptions): Promise<TestProxy> {
  const folder = options.folder ?? await mkdtemp(join(tmpdir(), 'berth-egress-test-'))
  const address = loopback(1)
  const further = await Promise.all((options.further ?? []).map(async each => ({ ...each, at: await freePort(address) })))
  const ports = { http: await freePort(address), https: await freePort(address), dns: await freePort(address), further: further.map(({ at }) => at) }
  const rootFile = join(folder, 'roots.pem')
  await writeFile(rootFile, options.roots.join(''))
  const held = { http: 'fd:http', https: 'fd:https', control: 'fd:control', httpPort: options.httpPort, httpsPort: options.httpsPort }
  const config = {
    listen: options.held === true ? held : { http: `${address}:${ports.http}`, https: `${address}:${ports.https}`, dns: `${address}:${ports.dns}`, control: join(folder, 'control.sock'), httpPort: options.httpPort, httpsPort: options.httpsPort, ...further.length === 0 ? {} : { guests: further.map(({ kind, port, at }) => ({ kind, at: `${address}:${at}`, port })) } },
    ca: { directory: join(folder, 'ca') },
    roots: [rootFile],
    allowPrivate: options.allowPrivate ?? [`${loopback(0)}/24`],
    deny: options.deny ?? [],
    resolver: { servers: options.system === undefined ? [options.resolver] : [], timeoutMs: 2000, ipv6: options.ipv6 ?? false },
    limits: { drainMs: 500, ...options.limits },
    audit: { file: join(folder, 'audit', 'requests.jsonl') },
    // Not as many as there happen to be processors.
    ...options.program === undefined ? { workers: options.workers ?? 2 } : {}
  }
  await mkdir(config.ca.directory, { recursive: true, mode: 0o700 })
  await writeFile(join(config.ca.directory, 'ca.key'), proxyKeyPem, { mode: 0o600 })
  const configFile = join(folder, 'egress.json')
  await writeFile(configFile, JSON.stringify(config))
  if (options.held !== true) {
    const [command = '', ...args] = [...withFiles(options.system), process.execPath, ...(options.nodeOptions ?? []), options.program ?? MAIN, '--config', configFile]
    return await running(spawn(command, args, { stdio: ['ignore', 'inherit', 'pipe'] }), folder, address, ports)
  }
  const holder = spawn(process.execPath, [HOLDER, address, join(folder, 'control.sock'), MAIN, configFile], { stdio: ['ignore', 'pipe', 'pipe'] })
  const [line] = await once(holder.stdout, 'data')
  const [http, https] = JSON.parse(String(line))
  return await running(holder, folder, address, { http, https, dns: 0, further: [] })
}

/** The beginning of a command that sees these files in place of the system's. */
function withFiles (system: ProxyOptions['system']): string[] {
  if (system === undefined) return []
  return ['unshare', '--mount', 'sh', '-c', 'mount --bind "$0" /etc/resolv.conf && mount --bind "$1" /etc/hosts && shift && exec "$@"', system.resolvConf, system.hosts]
}

async function running (child: ChildProcess, folder: string, address: string, ports: TestProxy['ports']): Promise<TestProxy> {
  let output = ''
  const listening = new Promise<void>((resolve, reject) => {
    child.stderr?.on('data', (text: Buffer) => {
      output += text.toString()
      if (output.includes('"msg":"listening"')) resolve()
    })
    child.once('exit', code => reject(new Error(`the proxy ended with ${code}: ${output}`)))
  })
  await listening
  let revision = 0
  const call = (method: string, path: string, body?: unknown) => callControl(join(folder, 'control.sock'), method, path, body)
  const audit = async (vm: string, after = 0): Promise<AuditEntry[]> => JSON.parse((await call('GET', `/audit?vm=${vm}&after=${after}&limit=10000`)).body).entries
  return {
    address,
    ports,
    folder,
    process: child,
    output: () => output,
    ca: async () => (await call('GET', '/ca')).body,
    call,
    audit,
    async policy (...vms) {
      const body: PolicyRevision = { revision: ++revision, vms }
      const answer = await call('PUT', '/policy', body)
      if (answer.status !== 200) throw new Error(answer.body)
    },
    async audited (vm, enough) {
      // The line of a request is written after its last byte was sent, so a client may be ahead of it.
      return await eventually('the requests are logged', async () => {
        const entries = await audit(vm)
        return enough(entries) && entries
      })
    },
    async stop () {
      if (child.exitCode === null && child.signalCode === null) {
        const ended = once(child, 'exit')
        const pids = [...output.matchAll(/"pid":(\d+)/g)].map(match => Number(match[1]))
        // The last one that spoke: the proxy itself, also when another program holds its sockets.
        process.kill(pids.at(-1) ?? child.pid ?? 0, 'SIGTERM')
        await ended
      }
      await rm(folder, { recursive: true, force: true })
    }
  }
}

async function callControl (socketPath: string, method: string, path: string, body?: unknown): Promise<ProxyAnswer> {
  const outgoing = request({ socketPath, method, path })
  const answered: Promise<[IncomingMessage]> = once(outgoing, 'response').then(([response]) => [response])
  outgoing.end(body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body))
  const [response] = await answered
  let text = ''
  for await (const chunk of response) text += String(chunk)
  return { status: response.statusCode ?? 0, body: text }
}

/** A VM's policy with one rule for one host, as most tests need it. */
export function vmPolicy (address: string, rules: readonly Partial<InjectRule>[] = [], more: Partial<VmPolicy> = {}): VmPolicy {
  return {
    id: `vm-${address}`,
    address,
    epoch: '1',
    mode: 'all',
    rules: rules.map(rule => ({ credential: 'API_KEY', hosts: ['api.good.test'], header: 'Authorization', format: 'Bearer ${value}', value: SECRET, mock: 'mock-API_KEY', ...rule })),
    ...more
  }
}

/** the value that no guest may ever see */
export const SECRET = 's3cr3t-value-0123456789abcdef'
