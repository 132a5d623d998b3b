// A network namespace with only a loopback device and one listener of this server: programs in there can reach nothing else.
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { Server } from 'node:net'
import { fileURLToPath } from 'node:url'
import { hasCode } from '../../../core/errors/system-code.ts'
import { HostCommandMissing } from '../../../core/process/errors.ts'

export interface Enclosure {
  readonly listener: Server
  readonly port: number
  /** prefix of a command that runs in there, valid as long as this process keeps the namespace */
  readonly enter: readonly string[]
  close (): Promise<void>
}

const PROGRAM = fileURLToPath(new URL('enclosure-program.js', import.meta.url))
const START_TIMEOUT_MS = 60_000

/** What the kernel says to those who may not, and where it has no such namespaces; a host may also lack `ip`, which only networks need. Anything else may be gone a moment later. */
const REFUSALS = /Operation not permitted|^unshare: .*Invalid argument|spawnSync ip ENOENT/m

/** This host lets this process make no namespace, now or later. */
export class EnclosureRefused extends Error {
  override readonly name = 'EnclosureRefused'
}

/** Makes one, which ends with this process. A user who may not make a network namespace may do it in a user namespace. @throws EnclosureRefused when this process may make neither */
export async function openEnclosure (): Promise<Enclosure> {
  try {
    return await make(['net'], ['--net'])
  } catch (error) {
    if (!(error instanceof EnclosureRefused)) throw error
    return await make(['net', 'user'], ['--user', '--map-root-user', '--net'])
  }
}

async function make (kinds: ReadonlyArray<'net' | 'user'>, how: readonly string[]): Promise<Enclosure> {
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', 'env', 'LC_ALL=C', 'unshare', ...how, process.execPath, PROGRAM], { cwd: '/', stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
  let words = ''
  child.stderr?.on('data', (text: Buffer) => { words = (words + text.toString()).slice(-1000) })
  const timer = setTimeout(() => { child.kill('SIGKILL') }, START_TIMEOUT_MS)
  try {
    const listener = await new Promise<Server>((resolve, reject) => {
      child.once('error', (error) => { reject(hasCode(error, 'ENOENT') ? HostCommandMissing.from(error, 'setpriv') : error) })
      // Not at its exit: what it has said may come after that.
      child.once('close', (code, signal) => {
        const said = words.trim()
        const message = `a network namespace for the tools of images cannot be made: ${said === '' ? signal ?? `exit code ${code}` : said}`
        reject(isRefused(said, kinds) ? new EnclosureRefused(message) : new Error(message))
      })
      child.once('message', (_message, handle) => {
        if (handle instanceof Server) resolve(handle)
        else reject(new Error('the namespace has no listener'))
      })
    })
    // Open files keep a namespace alive: no process needs to live in it.
    const files = await Promise.all(kinds.map(async (kind) => ({ kind, file: await open(`/proc/${String(child.pid)}/ns/${kind}`) })))
    const address = listener.address()
    if (address === null || typeof address === 'string') throw new Error('the listener has no port')
    return {
      listener,
      port: address.port,
      // In a user namespace the credentials are right already, and no others are possible.
      enter: ['nsenter', ...files.map(({ kind, file }) => `--${kind}=/proc/${process.pid}/fd/${file.fd}`), ...kinds.includes('user') ? ['--preserve-credentials'] : []],
      async close () {
        listener.close()
        await Promise.all(files.map(async ({ file }) => { await file.close() }))
      }
    }
  } finally {
    clearTimeout(timer)
    child.kill('SIGKILL')
  }
}

/** Where no user namespace is allowed, the kernel says so as if there were too many. */
function isRefused (said: string, kinds: ReadonlyArray<'net' | 'user'>): boolean {
  return REFUSALS.test(said) || (kinds.includes('user') && said.includes('No space left on device') && readFileSync('/proc/sys/user/max_user_namespaces', 'utf8').trim() === '0')
}
