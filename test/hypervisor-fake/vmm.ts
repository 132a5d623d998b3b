// The fake VMM: a process of its own, so that pids, signals, crashes and adoption are real. Started in its working folder with its order in argv.
import { appendFileSync, closeSync, openSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { FakeGuest } from './guest.ts'
import { AGENT_SOCKET, CONTROL_SOCKET, type FakeVmmOrder, type SavedGuest } from './script.ts'

/** What the driver and tests may ask over the control socket, one JSON object per line; each is answered unless the VMM hangs. */
export interface ControlRequest {
  readonly id: number
  readonly do: 'status' | 'pause' | 'resume' | 'hang' | 'unhang' | 'print' | 'crash' | 'rotate' | 'save' | 'replace'
  /** for `print` and `rotate` */
  readonly file?: 'output' | 'vmm'
  /** for `replace` */
  readonly disk?: string
  readonly text?: string
}
export interface ControlAnswer { readonly id: number, readonly status: 'running' | 'paused', readonly saved?: SavedGuest, readonly refused?: string }

const order: FakeVmmOrder = JSON.parse(process.argv[2] ?? '{}')
const { script } = order
const files = { ...order.files }
const disks = new Map(order.disks.map(({ id, path }) => [id, openSync(path, 'r')]))
let status: ControlAnswer['status'] = 'running'
let hangs = false
let held: Socket | undefined
// answers that a hanging VMM owes
let owed: Array<() => void> = []

// Dropped here rather than by spawn: the modules are loaded by now, and the user need not be able to read them.
if (order.identity !== undefined) {
  process.setgroups?.([])
  process.setgid?.(order.identity.gid)
  process.setuid?.(order.identity.uid)
}
if (script.launchFailure !== undefined) {
  console.error(script.launchFailure)
  process.exit(1)
}
if (script.crashAfterMs !== undefined) setTimeout(crash, script.crashAfterMs)
if (script.hangAfterMs !== undefined) setTimeout(() => { hangs = true }, script.hangAfterMs)

const guest = new FakeGuest(order, (text) => appendFileSync(files.output, text), () => process.exit(0), () => status === 'paused')

createServer((socket) => {
  // One host at a time, as with a real port: the next one is served when this one has gone.
  if (held !== undefined && !held.destroyed) held.destroy()
  held = socket
  guest.serve(socket)
}).listen(AGENT_SOCKET, () => {
  createServer(control).listen(CONTROL_SOCKET)
})

function control (socket: Socket): void {
  socket.on('error', () => {})
  createInterface({ input: socket }).on('line', (line) => {
    const request: ControlRequest = JSON.parse(line)
    const refused = obey(request)
    owed.push(() => { socket.write(JSON.stringify({ id: request.id, status, ...request.do === 'save' ? { saved: guest.save() } : {}, ...refused === undefined ? {} : { refused } } satisfies ControlAnswer) + '\n') })
    if (hangs) return
    for (const answer of owed) answer()
    owed = []
  }).on('error', () => {})
}

/** Returns why it was refused. */
function obey ({ do: what, file = 'output', disk = '', text = '' }: ControlRequest): string | undefined {
  switch (what) {
    case 'status': case 'save': break
    case 'pause': status = 'paused'; break
    case 'resume': status = 'running'; break
    case 'hang': hangs = true; break
    case 'unhang': hangs = false; break
    case 'print': appendFileSync(files[file], text); break
    case 'rotate': files[file] = text; appendFileSync(text, ''); break
    case 'replace': return replace(disk, text)
    case 'crash': crash()
  }
  return undefined
}

function replace (disk: string, path: string): string | undefined {
  const old = disks.get(disk)
  if (old === undefined) return `there is no disk ${disk}`
  try {
    disks.set(disk, openSync(path, 'r'))
    closeSync(old)
    return undefined
  } catch (error) {
    return String(error)
  }
}

function crash (): void {
  process.kill(process.pid, 'SIGKILL')
}
