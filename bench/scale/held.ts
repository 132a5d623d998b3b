// What some work costs this process, and for how long it held the event loop at once.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'

export interface Cost {
  /** ms by the clock */
  readonly wall: number
  /** ms of processor time of all threads */
  readonly cpu: number
  /** the longest time for which the event loop was held up, ms */
  readonly block: number
}

const RESOLUTION_MS = 1

export async function costOf (work: () => Promise<void>): Promise<Cost> {
  const loop = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  loop.enable()
  // It measures from one of its ticks to the next: there has to be one before, and one after.
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
