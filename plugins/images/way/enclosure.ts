// A network namespace with only a loopback device and one listener of this server: programs in there can reach nothing else.
import { spawn } from 'node:child_process'
import { open } from 'node:fs/promises'
import { Server } from 'node:net'
import { fileURLToPath } from 'node:url'

export interface Enclosure {
  readonly listener: Server
  readonly port: number
  /** prefix of a command that runs in there, valid as long as this process keeps the namespace */
  readonly enter: readonly string[]
  close (): Promise<void>
}

const PROGRAM = fileURLToPath(new URL('enclosure-program.js', import.meta.url))
const START_TIMEOUT_MS = 60_000

/** Makes one, which ends with this process. A user who may not make a network namespace may do it in a user namespace. @throws when this process may make neither */
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
