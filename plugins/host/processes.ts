// The processes that the server keeps running, with what they take of the host.
import { performance } from 'node:perf_hooks'
import type { KeptProcess, ProcessRegister } from '../../core/process/register.ts'
import { isAlive } from '../../core/process/identity.ts'
import { processesBelow, usageOf } from '../../core/process/usage.ts'
import type { HostProcess, HostProcesses } from './schemas.ts'

/** Processes that are asked about at a time: a host may have a thousand VMs. */
const AT_ONCE = 16
/** Requests within this time share one reading of /proc. */
const KEPT_MS = 1000

export class Processes {
  readonly #register: ProcessRegister
  #reading: Promise<HostProcesses> | undefined
  #until = 0

  constructor (register: ProcessRegister) {
    this.#register = register
  }

  async list (): Promise<HostProcesses> {
    if (this.#reading === undefined || performance.now() > this.#until) {
      this.#until = Infinity
      this.#reading = this.#read().finally(() => { this.#until = performance.now() + KEPT_MS })
    }
    return await this.#reading
  }

  async #read (): Promise<HostProcesses> {
    const waiting = [...this.#register.list().entries()].reverse()
    const processes: HostProcess[] = []
    const work = async (): Promise<void> => {
      for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) processes[next[0]] = await viewOf(next[1])
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
    const own = await usageOf(process.pid)
    if (own === undefined) throw new Error('the server is not in /proc')
    return { server: { pid: own.pid, since: timeOf(own.since), memory_bytes: own.memoryBytes, cpu_seconds: own.cpuSeconds }, processes }
  }
}

async function viewOf ({ name, plugin, identity, state, restarts, lastEnd, instanceId }: KeptProcess): Promise<HostProcess> {
  const [usage, below] = identity === undefined ? [undefined, []] : await Promise.all([usageOf(identity.pid), processesBelow(identity.pid)])
  // Its pid may belong to another process by now.
  const own = identity !== undefined && isAlive(identity) ? usage : undefined
  const children = own === undefined ? [] : (await Promise.all(below.map(usageOf))).filter((each) => each !== undefined)
  return {
    name,
    plugin,
    instance_id: instanceId ?? null,
    state: own === undefined ? 'ended' : state,
    pid: own?.pid ?? null,
    since: own === undefined ? null : timeOf(own.since),
    restarts: restarts ?? null,
    last_end: lastEnd === undefined ? null : { at: timeOf(lastEnd.at), reason: lastEnd.reason },
    memory_bytes: own?.memoryBytes ?? null,
    cpu_seconds: own?.cpuSeconds ?? null,
    children: children.map(({ pid, command, since, memoryBytes, cpuSeconds }) => ({ pid, command, since: timeOf(since), memory_bytes: memoryBytes, cpu_seconds: cpuSeconds }))
  }
}

function timeOf (ms: number): string {
  return new Date(ms).toISOString()
}
