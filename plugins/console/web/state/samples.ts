// The resource use of running instances over the last minutes, polled while it is visible.
import { signal, type Signal } from '@preact/signals'
import { call, path } from '../api/call.ts'
import type { InstanceStats } from '../api/types.ts'

export interface Sample {
  /** ms since the epoch */
  readonly at: number
  /** processors in use */
  readonly cpu: number
  readonly memory: number
  /** bytes a second */
  readonly received: number
  readonly sent: number
}

const EVERY_MS = 3000
const KEPT = 200
/** instances per round; a longer list is read in several rounds */
const AT_ONCE = 40

const known = new Map<string, { readonly samples: Signal<readonly Sample[]>, last?: InstanceStats & { readonly at: number } }>()
const watched = new Map<string, number>()
let timer: ReturnType<typeof setInterval> | undefined
let turn = 0

export function samplesOf (id: string): Signal<readonly Sample[]> {
  const entry = known.get(id) ?? { samples: signal<readonly Sample[]>([]) }
  known.set(id, entry)
  return entry.samples
}

/** Reads the figures of an instance until it is told not to. */
export function watchSamples (id: string): () => void {
  watched.set(id, (watched.get(id) ?? 0) + 1)
  timer ??= setInterval(() => { void round() }, EVERY_MS)
  void read(id)
  return () => {
    const left = (watched.get(id) ?? 1) - 1
    if (left > 0) watched.set(id, left)
    else watched.delete(id)
    if (watched.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

async function round (): Promise<void> {
  if (document.hidden) return
  const ids = [...watched.keys()]
  const from = ids.length > AT_ONCE ? (turn++ * AT_ONCE) % ids.length : 0
  for (const id of ids.slice(from, from + AT_ONCE)) await read(id)
}

async function read (id: string): Promise<void> {
  const stats = await call<InstanceStats>('GET', path`/instances/${id}/stats`).catch(() => undefined)
  if (stats === undefined) return
  const samples = samplesOf(id)
  const entry = known.get(id)
  const at = Date.now()
  const before = entry?.last
  if (entry !== undefined) entry.last = { ...stats, at }
  // Smaller figures than before belong to another run.
  if (before === undefined || stats.cpu_seconds < before.cpu_seconds || at <= before.at) return
  const seconds = (at - before.at) / 1000
  samples.value = [...samples.peek().slice(1 - KEPT), {
    at, cpu: (stats.cpu_seconds - before.cpu_seconds) / seconds, memory: stats.memory_rss_bytes,
    received: Math.max(0, stats.network_rx_bytes - before.network_rx_bytes) / seconds, sent: Math.max(0, stats.network_tx_bytes - before.network_tx_bytes) / seconds
  }]
}
