// What actions, faults and invariants have in their hands.
import { setTimeout as delay } from 'node:timers/promises'
import { hasCode } from '../../core/errors/system-code.ts'
import type { Far } from '../integration/egress-enforcement/far/far.ts'
import { runCommand } from '../helpers/exec.ts'
import { unsaid } from './answers.ts'
import { complain, say } from './complaints.ts'
import { proxyPids, vmmPids, workerPids } from './census/processes.ts'
import type { FaultKind } from './faults/kind.ts'
import type { Model } from './model.ts'
import type { TorturedDatabase } from './stage/database.ts'
import type { Receiver } from './stage/receiver.ts'
import type { TorturedServer } from './stage/server.ts'

/** Longer than anything takes that ends. */
const CALL_MS = 240_000
const COMMAND_SECONDS = 60

export type Row = Readonly<Record<string, unknown>>

export interface Answer {
  /** 0: none came, since the server was killed */
  readonly status: number
  readonly body: unknown
  /** for the log */
  readonly summary: string
  /** a field of the body */
  text (field: string): string
  items (): readonly Row[]
}

export interface Stage {
  readonly server: TorturedServer
  readonly database: TorturedDatabase
  readonly far: Far
  /** of webhooks */
  readonly receiver: Receiver
  readonly model: Model
  /** the small file system of the data folder */
  readonly disk: string
  readonly toolOrders: string
  readonly namespace: string
  /** the control group that those of VMs are made in */
  readonly groups: string
  /** the value that only one host may see */
  readonly secret: string
  /** of guests */
  readonly image: string
}

export class World {
  readonly stage: Stage
  /** faults of this round */
  readonly faults = new Set<FaultKind>()
  /** processes that the torture has ended itself; `watch` may look only after the fault is over */
  readonly killed = new Set<number>()

  constructor (stage: Stage) {
    this.stage = stage
  }

  get server (): TorturedServer { return this.stage.server }
  get model (): Model { return this.stage.model }

  get registry (): string {
    return new URL(this.server.now.url).host
  }

  /** One call, once the server is up. Complains of an answer that is said nowhere, and of one that does not come. */
  async call (method: string, path: string, body?: unknown): Promise<Answer> {
    const { url, key } = await this.server.up()
    const kills = this.server.kills
    const begun = performance.now()
    try {
      const response = await fetch(`${url}${path}`, {
        method,
        headers: { authorization: `Bearer ${key}`, ...body === undefined || body instanceof FormData ? {} : { 'content-type': 'application/json' } },
        ...body === undefined ? {} : { body: body instanceof FormData ? body : JSON.stringify(body) },
        signal: AbortSignal.timeout(CALL_MS)
      })
      const text = await response.text()
      const parsed = parse(text)
      const code = field(parsed, 'code')
      const why = unsaid(response.status, code, this.faults, response.headers.get('retry-after'))
      if (why !== undefined) complain(`${method} ${path}: ${why}: ${text.slice(0, 300)}`)
      return answerOf(response.status, parsed, `${response.status}${code === '' ? '' : ` ${code}`} in ${Math.round(performance.now() - begun)} ms`)
    } catch (error) {
      if (this.server.kills === kills || (error instanceof Error && error.name === 'TimeoutError')) complain(`${method} ${path}: no answer after ${Math.round(performance.now() - begun)} ms: ${reason(error)}`)
      return answerOf(0, undefined, `no answer: ${reason(error)}`)
    }
  }

  /** Something that is more than a call, and may fail in its own way. */
  async attempt (what: string, work: (url: string, key: string) => Promise<unknown>): Promise<string> {
    const { url, key } = await this.server.up()
    try {
      await work(url, key)
      return 'done'
    } catch (error) {
      if (error instanceof Error && error.name === 'TimeoutError') complain(`${what}: no answer`)
      return reason(error).slice(0, 200)
    }
  }

  /** A line of shell in a guest; what it printed, or why there was nothing. */
  async shell (name: string, script: string): Promise<string> {
    const { url, key } = await this.server.up()
    const kills = this.server.kills
    const running = runCommand({ url, key }, name, { command: ['/bin/sh', '-c', script], timeout: COMMAND_SECONDS })
    running.catch(() => undefined)
    const late = new AbortController()
    try {
      const ended = await Promise.race([running, delay(CALL_MS, undefined, { signal: late.signal })])
      if (ended === undefined) {
        if (this.server.kills === kills) complain(`a command in ${name} did not end: ${script}`)
        return 'no end'
      }
      return `${ended.exitCode ?? ended.error ?? ''}: ${(ended.stdout + ended.stderr).trim().slice(0, 200)}`
    } catch (error) {
      return reason(error)
    } finally {
      late.abort()
    }
  }

  /** Ends the process of a kind that has this place among them, counted from the oldest. Those of this namespace are all ours. */
  async kill (kind: 'worker' | 'proxy' | 'vmm', place: number): Promise<void> {
    const pids = await (kind === 'worker' ? workerPids() : kind === 'proxy' ? proxyPids() : vmmPids())
    const pid = pids[place % pids.length]
    say(`  ${kind}s: ${pids.join(' ')}; kill ${pid ?? 'none'}`)
    if (pid === undefined) return
    this.killed.add(pid)
    try {
      process.kill(pid, 'SIGKILL')
    } catch (error) {
      if (!hasCode(error, 'ESRCH')) throw error
    }
  }
}

function answerOf (status: number, body: unknown, summary: string): Answer {
  return {
    status,
    body,
    summary,
    text: (name) => field(body, name),
    items: () => Array.isArray(body) ? body as Row[] : []
  }
}

function parse (text: string): unknown {
  try {
    return text === '' ? undefined : JSON.parse(text)
  } catch {
    // an event stream
    return text
  }
}

function field (body: unknown, name: string): string {
  if (typeof body !== 'object' || body === null) return ''
  const value = (body as Row)[name]
  return typeof value === 'string' ? value : ''
}

export function reason (error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message
}
