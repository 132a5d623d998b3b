// Keeps instances awake while they have requests: for a while after each query of nginx, and as long as nginx has a connection to them.
import { readFile } from 'node:fs/promises'
import { hasCode } from '../../core/errors/system-code.ts'
import type { InstanceLeases, Lease } from '../instances/contract.ts'

const LOOK_MS = 2000
/** More than three checks: a single late check must not put an instance to sleep. */
const HOLD_MS = 10_000
const ESTABLISHED = '01'

interface Held { readonly lease: Lease, until: number }

export class CallLeases {
  readonly #leases: InstanceLeases
  readonly #held = new Map<string, Held>()
  /** by address: the instances whose connections are checked */
  readonly #known = new Map<string, string>()
  #timer: NodeJS.Timeout | undefined
  #work: Promise<void> = Promise.resolve()

  constructor (leases: InstanceLeases) {
    this.#leases = leases
  }

  /** @param pid a process in the guests' network; undefined while there is none. @param onError of a check that failed */
  start (pid: () => number | undefined, onError: (error: unknown) => void): void {
    this.#timer = setInterval(() => { this.#work = this.#look(pid()).catch(onError) }, LOOK_MS).unref()
  }

  async close (): Promise<void> {
    clearInterval(this.#timer)
    await this.#work
    for (const { lease } of this.#held.values()) lease.release()
    this.#held.clear()
  }

  /** The instance has a request, or is about to get one. */
  touch (id: string): void {
    const held = this.#held.get(id)
    const until = performance.now() + HOLD_MS
    if (held === undefined) this.#held.set(id, { lease: this.#leases.take(id, 'ingress'), until })
    else held.until = until
  }

  /** An instance's address, by which its connections are recognized. */
  know (id: string, ip: string): void {
    this.#known.set(ip, id)
  }

  forget (id: string): void {
    for (const [ip, owner] of this.#known) if (owner === id) this.#known.delete(ip)
    this.#held.get(id)?.lease.release()
    this.#held.delete(id)
  }

  async #look (pid: number | undefined): Promise<void> {
    for (const ip of pid === undefined ? [] : connectedTo(await tableOf(pid))) {
      const id = this.#known.get(ip)
      if (id !== undefined) this.touch(id)
    }
    for (const [id, { lease, until }] of this.#held) {
      if (until > performance.now()) continue
      lease.release()
      this.#held.delete(id)
    }
  }
}

async function tableOf (pid: number): Promise<string> {
  try {
    return await readFile(`/proc/${pid}/net/tcp`, 'utf8')
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ESRCH', 'EINVAL')) return ''
    throw error
  }
}

/** Addresses at the other end of open connections, each once. */
function connectedTo (table: string): Set<string> {
  const found = new Set<string>()
  for (const line of table.split('\n').slice(1)) {
    const [, , remote = '', state] = line.trim().split(/\s+/)
    if (state === ESTABLISHED && remote.length === 13) found.add(addressOf(remote.slice(0, 8)))
  }
  return found
}

/** The kernel writes the four bytes as one number in this machine's byte order, which is little-endian wherever Berth runs. */
function addressOf (hex: string): string {
  return [6, 4, 2, 0].map((at) => parseInt(hex.slice(at, at + 2), 16)).join('.')
}
