// The other end of the measurements: in a namespace, an iperf3 server and a door where each guest comes for its orders.
import { spawn, type ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import { iperf } from './image.ts'

const seconds = 2
/** while TCP finds its pace */
const omittedSeconds = 1

export type Way = 'upload' | 'download'

export interface Guest {
  /** Mbit/s that arrived, through one TCP connection */
  measure (way: Way): Promise<number>
}

export interface Peer {
  /** The guest that runs `obeying(address, port)`; it may not be there yet. */
  guest (port: number): Guest
  end (): void
}

/** @param namespace its path */
export async function startPeer (namespace: string, address: string): Promise<Peer> {
  const children: ChildProcess[] = []
  const start = (command: readonly string[]) => {
    const child = spawn('setpriv', ['--pdeathsig', 'KILL', 'nsenter', `--net=${namespace}`, ...command], { stdio: ['pipe', 'pipe', 'inherit'] })
    children.push(child)
    return child
  }
  const server = start([iperf, '--server', '--bind', address, '--forceflush'])
  await new Promise<void>((resolve, reject) => {
    server.stdout.on('data', (text: Buffer) => { if (text.includes('listening')) resolve() })
    server.once('exit', code => reject(new Error(`the iperf3 server ended with ${String(code)}`)))
  })
  return {
    guest (port) {
      const door = start(['busybox', 'nc', '-l', '-p', String(port)])
      const answers = createInterface({ input: door.stdout })[Symbol.asyncIterator]()
      return {
        async measure (way) {
          door.stdin.write(`--client ${address} --time ${seconds} --omit ${omittedSeconds}${way === 'download' ? ' --reverse' : ''}\n`)
          const { value, done } = await answers.next()
          if (done === true) throw new Error('the guest has gone')
          return megabitsOf(JSON.parse(value))
        }
      }
    },
    end () { for (const child of children) child.kill('SIGKILL') }
  }
}

interface Report { readonly error?: string, readonly end?: { readonly sum_received?: { readonly bits_per_second?: number } } }

function megabitsOf (report: Report): number {
  const bits = report.end?.sum_received?.bits_per_second
  if (bits === undefined) throw new Error(`iperf3 in the guest: ${report.error ?? 'a report without a result'}`)
  return bits / 1e6
}
