// The host's rules outlive the server. A file keeps the name of their link, so that they can be removed without the network.
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { HostCommands } from '../../core/contracts/services.ts'
import { writeFileDurably } from '../../core/fs/durable.ts'
import { forgetConnections } from '../../core/library/conntrack.ts'
import { ifListed } from '../../core/library/nft.ts'
import { readIfThere } from '../../core/fs/read-if-there.ts'
import { addressesIn, renderNone, tableOf } from './rules.ts'

const TIMEOUT_MS = 20_000
const LINK = /^[A-Za-z0-9._-]{1,15}$/

interface Place { readonly dataDir: string, readonly commands: HostCommands }

/** Must be called before the first rule is set. */
export async function noteLink (dataDir: string, link: string): Promise<void> {
  if (await readLink(dataDir) === link) return
  await mkdir(join(dataDir, 'ports'), { recursive: true, mode: 0o700 })
  await writeFileDurably(fileOf(dataDir), link, 0o600)
}

/** Removes the rules that a server of this data folder has left, and ends their connections. Does nothing when there are none. */
export async function endLeftovers ({ dataDir, commands }: Place): Promise<void> {
  const link = await readLink(dataDir)
  if (link === undefined) return
  const ips = await led(commands, link)
  await commands.run('nft', ['-f', '-'], { timeoutMs: TIMEOUT_MS, input: renderNone(link) })
  await commands.run('sysctl', ['--quiet', '--ignore', '--write', `net/ipv4/conf/${link}/route_localnet=0`], { timeoutMs: TIMEOUT_MS })
  for (const ip of ips) await endConnections(commands, ip)
  await rm(fileOf(dataDir), { force: true })
}

/** Ends the connections that the rules led to a guest. */
export async function endConnections (commands: HostCommands, ip: string): Promise<void> {
  await forgetConnections(async (args) => await commands.run('conntrack', args, { timeoutMs: TIMEOUT_MS }), ['--reply-src', ip])
}

/** Whether the rules of a link lead anywhere, and have not been removed or emptied by somebody else. */
export async function areThere (commands: HostCommands, link: string): Promise<boolean> {
  return (await list(commands, ['chain', 'ip', tableOf(link), 'leading']))?.includes('dnat') === true
}

async function led (commands: HostCommands, link: string): Promise<ReadonlySet<string>> {
  const json = await list(commands, ['table', 'ip', tableOf(link)])
  return json === undefined ? new Set() : addressesIn(json)
}

/** As JSON; undefined when it is not there. */
async function list (commands: HostCommands, what: readonly string[]): Promise<string | undefined> {
  return await ifListed(async () => (await commands.run('nft', ['--json', 'list', ...what], { timeoutMs: TIMEOUT_MS })).stdout)
}

async function readLink (dataDir: string): Promise<string | undefined> {
  const link = await readIfThere(fileOf(dataDir))
  return link !== undefined && LINK.test(link) ? link : undefined
}

function fileOf (dataDir: string): string {
  return join(dataDir, 'ports', 'link')
}
