// Measures the cost of some work for this process, and the longest time for which it blocked the event loop.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'

export interface Cost {
  /** ms by the clock */
  readonly wall: number
  /** ms of processor time of all threads */
  readonly cpu: number
  /** the longest time for which the event loop was blocked, ms */
  readonly block: number
}

const RESOLUTION_MS = 1

export async function costOf (work: () => Promise<void>): Promise<Cost> {
  const loop = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  loop.enable()
  // The monitor measures from one of its ticks to the next: there must be one before the work, and one after.
  await delay(3 * RESOLUTION_MS)
  loop.reset()
  const before = process.cpuUsage()
  const began = performance.now()
  await work()
  const wall = performance.now() - began
  const { user, system } = process.cpuUsage(before)
  await delay(3 * RESOLUTION_MS)
  loop.disable()
  return { wall, cpu: (user + system) / 1000, block: Math.max(0, loop.max / 1e6 - RESOLUTION_MS) }
}
