// What servers leave on a host beside processes and files: links and rules of the guests' namespace, mounts, loop devices, locks.
import { existsSync } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { createHostCommands } from '../../../core/process/run.ts'

const commands = createHostCommands()
const GUEST_LINK = /^b[ti][a-z2-7]{12}$/
/** sets with an element for each guest that is plugged */
const GUEST_SETS = new Set(['senders', 'guests', 'direct', 'mediated', 'sealed'])

interface Listed { readonly nftables: readonly { readonly set?: Elements, readonly map?: Elements }[] }
interface Elements { readonly name: string, readonly elem?: readonly unknown[] }

/** TAPs and shapers of guests. */
export async function guestLinks (namespace: string): Promise<string[]> {
  if (!existsSync(`/run/netns/${namespace}`)) return []
  const { stdout } = await commands.run('ip', ['-n', namespace, '-json', 'link', 'show'])
  return (JSON.parse(stdout) as { ifname: string }[]).map(({ ifname }) => ifname).filter((name) => GUEST_LINK.test(name))
}

/** For each set of the rules the addresses in it. */
export async function ruleElements (namespace: string): Promise<ReadonlyMap<string, readonly string[]>> {
  if (!existsSync(`/run/netns/${namespace}`)) return new Map()
  const { stdout } = await commands.run('ip', ['netns', 'exec', namespace, 'nft', '--json', 'list', 'ruleset'])
  const { nftables } = JSON.parse(stdout) as Listed
  return new Map(nftables.flatMap(({ set }): [string, string[]][] => set === undefined || !GUEST_SETS.has(set.name) ? [] : [[set.name, (set.elem ?? []).map(addressOf).sort()]]))
}

/** The sender's address is the last field of three. */
function addressOf (element: unknown): string {
  if (typeof element === 'object' && element !== null && 'concat' in element && Array.isArray(element.concat)) return String(element.concat.at(-1))
  return String(element)
}

export async function mounts (): Promise<string[]> {
  return (await readFile('/proc/self/mountinfo', 'utf8')).trim().split('\n').map((line) => line.split(' ')[4] ?? '').sort()
}

/** Loop devices with a file below `folder`. */
export async function loopDevices (folder: string): Promise<string[]> {
  const names = (await readdir('/sys/block').catch(() => [])).filter((name) => name.startsWith('loop'))
  const files = await Promise.all(names.map(async (name) => ({ name, file: (await readFile(`/sys/block/${name}/loop/backing_file`, 'utf8').catch(() => '')).trim() })))
  return files.filter(({ file }) => file.startsWith(folder)).map(({ name, file }) => `${name} ${file}`)
}

export interface Lock { readonly pid: number, readonly inode: string }

/** Locks on files of the disk. Those of processes elsewhere have no pid here. */
export async function locks (disk: string): Promise<Lock[]> {
  const { dev } = await stat(disk)
  const device = `${(dev >> 8 & 0xfff).toString(16).padStart(2, '0')}:${(dev & 0xff).toString(16).padStart(2, '0')}`
  return (await readFile('/proc/locks', 'utf8')).trim().split('\n').map((line) => line.split(/\s+/)).filter((words) => words.some((word) => word.startsWith(`${device}:`)))
    .map((words): Lock => ({ pid: Number(words.at(-4)), inode: words.at(-3) ?? '' }))
}

/** Ports of the host that its own rules lead to guests. */
export async function leadingPorts (): Promise<string[]> {
  const { stdout } = await commands.run('nft', ['--json', 'list', 'ruleset'])
  const maps = (JSON.parse(stdout) as Listed).nftables.flatMap(({ map }) => map === undefined ? [] : [map])
  return maps.flatMap(({ name, elem }) => (elem ?? []).map((each) => `${name.split('_')[0] ?? ''} ${portOf(each)}`)).sort()
}

/** An element is a pair of what is looked up, whose last part is the port, and of where it leads. */
function portOf (element: unknown): string {
  const [key] = element as [unknown]
  return addressOf(key)
}
