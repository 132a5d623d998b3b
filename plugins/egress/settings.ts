// What is wrong with the settings that their schema cannot say. A proxy would refuse some of it only at its start, which may come much later, and one that systemd runs hears of the rest never.
import { readFile } from 'node:fs/promises'
import { Value } from 'typebox/value'
import { HTTP_PORT, HTTPS_PORT } from '../../proxy/contract/ports.ts'
import { rangeList } from '../../proxy/contract/ranges.ts'
import { EgressConfig } from './manifest.ts'

const DNS_PORT = 53
/** The file of a proxy that systemd runs, which stands beside the server's: the units say `/etc/berth` of both. */
export const PROXY_FILE = 'egress.yaml'

/** Settings that only a proxy has that this server starts, and where they are said to one that systemd runs. */
const OF_MANAGED = [
  [['proxy', 'user'], 'User= of berth-egress.service'],
  [['proxy', 'workers'], `workers of /etc/berth/${PROXY_FILE}`],
  [['proxy', 'startTimeout'], 'TimeoutStartSec= of berth-egress.service'],
  [['roots'], `roots of /etc/berth/${PROXY_FILE}`],
  [['allowPrivate'], `allowPrivate of /etc/berth/${PROXY_FILE}`],
  [['limits', 'connections'], `limits.connections of /etc/berth/${PROXY_FILE}`],
  [['limits', 'requests'], `limits.requests of /etc/berth/${PROXY_FILE}`],
  [['audit', 'maxFileSize'], `audit.maxFileBytes of /etc/berth/${PROXY_FILE}`],
  [['audit', 'files'], `audit.files of /etc/berth/${PROXY_FILE}`]
] as const

/** One sentence for each problem, which begins with the key. */
export async function settingProblems (config: EgressConfig): Promise<string[]> {
  const { ports, roots, allowPrivate, deny } = config
  const ranges = Object.entries({ allowPrivate, deny }).flatMap(([field, list]) => list.flatMap((range, index) => problemOf(`${field}.${index}`, () => rangeList([range]))))
  const files = await Promise.all(roots.map(async (path, index) => await rootProblem(`roots.${index}`, path)))
  return [...externalProblems(config), ...problemOf('ports', () => checkPorts(ports)), ...ranges, ...files.flat()]
}

function externalProblems (config: EgressConfig): string[] {
  if (config.proxy.manage) return []
  const defaults = Value.Default(EgressConfig, {})
  const set = OF_MANAGED.filter(([path]) => JSON.stringify(valueAt(config, path)) !== JSON.stringify(valueAt(defaults, path)))
  return [
    ...config.proxy.controlSocket === undefined ? [sentence('proxy.controlSocket', 'is needed when manage is false')] : [],
    ...set.map(([path, place]) => sentence(path.join('.'), `is of a proxy that this server starts, and does nothing while proxy.manage is false; it belongs into the proxy's own settings, as ${place}`))
  ]
}

function valueAt (value: unknown, path: readonly string[]): unknown {
  return path.reduce((at: unknown, key) => typeof at === 'object' && at !== null ? Reflect.get(at, key) : undefined, value)
}

function checkPorts ({ http, https }: EgressConfig['ports']): void {
  for (const [kind, first, ports] of [['http', HTTP_PORT, http], ['https', HTTPS_PORT, https]] as const) {
    if (!ports.includes(first)) throw new Error(`${kind} must have ${first}: guests reach that one through the proxy alone`)
  }
  const twice = http.find((port) => https.includes(port))
  if (twice !== undefined) throw new Error(`${twice} must be in http or in https, and not in both`)
  if ([...http, ...https].includes(DNS_PORT)) throw new Error(`${DNS_PORT} is where guests ask for names, and cannot be one of them`)
}

async function rootProblem (field: string, path: string): Promise<string[]> {
  try {
    const text = await readFile(path, 'utf8')
    return text.includes('-----BEGIN CERTIFICATE-----') ? [] : [sentence(field, `${path} holds no certificate in PEM`)]
  } catch (error) {
    return [sentence(field, `${path} cannot be read: ${messageOf(error)}`)]
  }
}

function problemOf (field: string, check: () => void): string[] {
  try {
    check()
    return []
  } catch (error) {
    return [sentence(field, messageOf(error))]
  }
}

function sentence (field: string, rule: string): string {
  return `plugins.egress.config.${field}: ${rule}`
}

function messageOf (error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
