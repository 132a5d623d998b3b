// A network namespace with nothing in it but a loopback device and one listener of this server's: what runs in there has no other way out.
import { spawn } from 'node:child_process'
import { open } from 'node:fs/promises'
import { Server } from 'node:net'
import { fileURLToPath } from 'node:url'

export interface Enclosure {
  readonly listener: Server
  readonly port: number
  /** words before a command that is to run in there, good as long as this process holds the namespace */
  readonly enter: readonly string[]
  close (): Promise<void>
}

const PROGRAM = fileURLToPath(new URL('enclosure-program.js', import.meta.url))
const START_TIMEOUT_MS = 60_000

/** Makes one; it goes with this process. Who may make no network namespace may in a user namespace of their own. @throws when this process may make neither */
export async function openEnclosure (): Promise<Enclosure> {
  return await make(['net'], ['--net']).catch(async () => await make(['net', 'user'], ['--user', '--map-root-user', '--net']))
}

async function make (kinds: ReadonlyArray<'net' | 'user'>, how: readonly string[]): Promise<Enclosure> {
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', 'unshare', ...how, process.execPath, PROGRAM], { cwd: '/', stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
  let words = ''
  child.stderr?.on('data', (text: Buffer) => { words = (words + text.toString()).slice(-1000) })
  const timer = setTimeout(() => { child.kill('SIGKILL') }, START_TIMEOUT_MS)
  try {
    const listener = await new Promise<Server>((resolve, reject) => {
      child.once('error', reject)
      child.once('exit', () => { reject(new Error(`a network namespace for the tools of images cannot be made: ${words.trim()}`)) })
      child.once('message', (_message, handle) => {
        if (handle instanceof Server) resolve(handle)
        else reject(new Error('the namespace has no listener'))
      })
    })
    // Open files hold a namespace: nobody has to live in it.
    const files = await Promise.all(kinds.map(async (kind) => ({ kind, file: await open(`/proc/${String(child.pid)}/ns/${kind}`) })))
    const address = listener.address()
    if (address === null || typeof address === 'string') throw new Error('the listener has no port')
    return {
      listener,
      port: address.port,
      // In a user namespace the credentials are right already, and others are not to be had.
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
