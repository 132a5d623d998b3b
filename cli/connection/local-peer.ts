// Connections that the key of this host's own server may be sent on. While that server is down any user of the host may listen at its port,
// so it is looked up who has taken the connection before anything is said on it.
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect, isIPv4, type Socket } from 'node:net'
import { endianness } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { EXIT } from '../exit-codes.ts'
import { Failure } from '../failure.ts'

/** The file that a key was read from. Its owner reads the key anyway. */
export interface KeyFile { readonly path: string, readonly owner: number }

/** the kernel's lists of connections; one over IPv4 is in the second if its listener has an IPv6 socket */
const CONNECTIONS = ['/proc/net/tcp', '/proc/net/tcp6'] as const
/** how long a busy server may take to accept */
const ACCEPT_MS = 10_000
const STEP_MS = 20

/** Connects to an address of this host. The process at the other end is root's or of the owner of the key's file, or this fails and nothing was sent. */
export async function connectToOwner (url: URL, file: KeyFile, signal: AbortSignal): Promise<Socket> {
  const socket = connect({ host: url.hostname, port: Number(url.port === '' ? 80 : url.port), noDelay: true })
  try {
    await once(socket, 'connect', { signal })
    // Whoever takes the connection listens for errors of its own.
    socket.on('error', () => undefined)
    const user = await userAtOtherEnd(socket, signal)
    if (socket.errored !== null) throw socket.errored
    if (user !== 0 && user !== file.owner) throw refused(url, file, user)
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  }
}

function refused (url: URL, file: KeyFile, user: number | undefined): Failure {
  const who = user === undefined ? `it cannot be seen which user's process has taken the connection to ${url.origin}` : `${url.origin} is answered by a process of user ${user}, and not by one of root or of the owner of ${file.path}`
  return new Failure(`${who}: the key in that file was not sent`, { exitCode: EXIT.notAllowed, hint: 'if a proxy of this host leads to the server, name the key with --token-file, or log in with "berth login"' })
}

/** Undefined when that cannot be told. A connection that waits to be accepted has no inode, and kernels up to 6.16 name root for it, whoever listens. */
async function userAtOtherEnd ({ localAddress = '', localPort = 0, remoteAddress = '', remotePort = 0 }: Socket, signal: AbortSignal): Promise<number | undefined> {
  if (!isIPv4(localAddress) || !isIPv4(remoteAddress)) return undefined
  const [theirs, ours] = [`${listed(remoteAddress)}:${listedPort(remotePort)}`, `${listed(localAddress)}:${listedPort(localPort)}`]
  const mapped = listedBytes([...Array<number>(10).fill(0), 0xFF, 0xFF, 0, 0, 0, 0]).slice(0, -8)
  for (let waited = 0; waited < ACCEPT_MS; waited += STEP_MS) {
    const [inIPv4, inIPv6] = await Promise.all(CONNECTIONS.map(async (file) => await readFile(file, 'utf8').catch(() => undefined)))
    if (inIPv4 === undefined) return undefined
    const row = rowOf(inIPv4, `${theirs} ${ours} `) ?? rowOf(inIPv6 ?? '', `${mapped}${theirs} ${mapped}${ours} `)
    if (row !== undefined && row.inode !== 0) return row.user
    await pause(STEP_MS, undefined, { signal })
  }
  return undefined
}

/** Columns after the two addresses: state, queues, timer, retransmissions, user, timeout, inode. */
function rowOf (list: string, addresses: string): { readonly user: number, readonly inode: number } | undefined {
  const at = list.indexOf(addresses)
  if (at < 0) return undefined
  const [, , , , user, , inode] = list.slice(at + addresses.length, list.indexOf('\n', at)).trim().split(/\s+/)
  return { user: Number(user), inode: Number(inode) }
}

function listed (address: string): string {
  return listedBytes(address.split('.').map(Number))
}

/** The list prints each four bytes as one number of the processor's order. */
function listedBytes (bytes: readonly number[]): string {
  const words = Array.from({ length: bytes.length / 4 }, (_word, index) => bytes.slice(index * 4, index * 4 + 4))
  return words.map((word) => Buffer.from(endianness() === 'LE' ? word.toReversed() : word).toString('hex').toUpperCase()).join('')
}

function listedPort (port: number): string {
  return port.toString(16).toUpperCase().padStart(4, '0')
}
