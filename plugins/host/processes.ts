// The processes that the server keeps running, with what they take of the host.
import { performance } from 'node:perf_hooks'
import type { KeptProcess, ProcessRegister } from '../../core/process/register.ts'
import { isAlive } from '../../core/process/identity.ts'
import { processesBelow, usageOf, type ProcessUsage } from '../../core/process/usage.ts'

/** A process with what it takes. */
export interface SeenProcess {
  readonly kept: KeptProcess
  /** undefined while it does not run */
  readonly usage?: ProcessUsage
  readonly children: readonly ProcessUsage[]
}

export interface SeenProcesses { readonly server: ProcessUsage, readonly processes: readonly SeenProcess[] }

/** Processes that are asked about at a time: a host may have a thousand VMs. */
const AT_ONCE = 16
/** Requests within this time share one reading of /proc. */
const KEPT_MS = 1000

export class Processes {
  readonly #register: ProcessRegister
  #reading: Promise<SeenProcesses> | undefined
  #until = 0

  constructor (register: ProcessRegister) {
    this.#register = register
  }

  async list (): Promise<SeenProcesses> {
    if (this.#reading === undefined || performance.now() > this.#until) {
      this.#until = Infinity
      this.#reading = this.#read().finally(() => { this.#until = performance.now() + KEPT_MS })
    }
    return await this.#reading
  }

  async #read (): Promise<SeenProcesses> {
    const all = this.#register.list()
    const waiting = [...all.entries()].reverse()
    const kept = new Set(all.flatMap(({ identity }) => identity === undefined ? [] : [identity.pid]))
    const processes: SeenProcess[] = []
    const work = async (): Promise<void> => {
      for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) processes[next[0]] = await lookAt(next[1], kept)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
    const server = await usageOf(process.pid)
    if (server === undefined) throw new Error('the server is not in /proc')
    return { server, processes }
  }
}

/** @param others processes that are told of by themselves: one that was started by another is below that one, too */
async function lookAt (kept: KeptProcess, others: ReadonlySet<number>): Promise<SeenProcess> {
  const { identity } = kept
  if (identity === undefined) return { kept, children: [] }
  const [usage, below] = await Promise.all([usageOf(identity.pid), processesBelow(identity.pid, others)])
  // Its pid may belong to another process by now.
  if (usage === undefined || !isAlive(identity)) return { kept, children: [] }
  return { kept, usage, children: (await Promise.all(below.map(usageOf))).filter((each) => each !== undefined) }
}
