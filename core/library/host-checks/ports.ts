// Checks the ports of this host that a server uses, and which process has them.
import { readFile } from 'node:fs/promises'
import type { Look } from './check.ts'

const API_PORT = 8080
const PORTS: readonly (readonly [port: number, use: string])[] = [[API_PORT, 'the API'], [80, 'ingresses'], [443, 'ingresses with TLS'], [9464, 'metrics']]
const LISTEN = '0A'

/** @param isOurs whether a Berth server answers at a port of this host */
export async function ports (isOurs: (port: number) => Promise<boolean>, looked = PORTS): Promise<Look> {
  const listening = await listeningPorts()
  const taken = looked.filter(([port]) => listening.has(port))
  const free = looked.filter(([port]) => !listening.has(port)).map(([port, use]) => `${port} (${use})`)
  const freeText = free.length === 0 ? '' : `free: ${free.join(', ')}`
  if (taken.length === 0) return { verdict: 'ok', found: freeText }
  const [api] = looked
  const takenText = [`taken: ${taken.map(([port, use]) => `${port} (${use})`).join(', ')}`, ...freeText === '' ? [] : [freeText]].join('; ')
  // A server that runs here uses these ports itself.
  if (api !== undefined && await isOurs(api[0])) return { verdict: 'ok', found: `${takenText}; a server of Berth's runs here` }
  return { verdict: 'warning', found: takenText, remedy: 'where another program has them, give the server others: server.listen, plugins.ingress.config.listen, metrics.listen' }
}

/** TCP ports that are in use, on any address. */
async function listeningPorts (): Promise<Set<number>> {
  const tables = await Promise.all(['/proc/net/tcp', '/proc/net/tcp6'].map(async (file) => await readFile(file, 'utf8').catch(() => '')))
  const found = new Set<number>()
  for (const line of tables.flatMap((table) => table.split('\n').slice(1))) {
    const [, local = '', , state] = line.trim().split(/ +/)
    if (state === LISTEN) found.add(Number.parseInt(local.slice(local.lastIndexOf(':') + 1), 16))
  }
  return found
}
