// Looks at the server and the proxy while they are tortured: that the event loop is not held up, that the proxy has no fault, and that no worker ends by itself.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { isProxy, isWorker, processes } from './census/processes.ts'
import { complain, say } from './complaints.ts'
import { METRICS } from './stage/stage.ts'
import type { World } from './world.ts'

const POLL_MS = 500
/** under the load of emulated guests */
const MAX_STALL_SECONDS = 1
const SAID_STALL_SECONDS = 0.3
const ANSWER_MS = 20_000
/** looks, one after the other */
const MOST_UNTOLD = 10

/** What it gives ends it. */
export function watch (world: World): () => Promise<void> {
  const end = new AbortController()
  const own = monitorEventLoopDelay({ resolution: 10 })
  own.enable()
  let worst = 0
  let untold = 0
  // What a server does before it listens holds nobody up.
  let known = 0
  let workers = new Map<number, number>()
  const lookOnce = async (): Promise<void> => {
    const kills = world.server.kills
    const figures = world.server.isUp ? await metrics() : undefined
    if (figures !== undefined && known !== world.server.now.pid) {
      known = world.server.now.pid
      own.reset()
    } else if (figures !== undefined) {
      // What holds this process up, too, is the machine.
      const stall = (figure(figures, 'nodejs_eventloop_lag_max_seconds') ?? 0) - own.max / 1e9
      own.reset()
      worst = Math.max(worst, stall)
      if (stall > SAID_STALL_SECONDS) say(`  the event loop of the server was held up for ${stall.toFixed(2)} s`)
      if (stall > MAX_STALL_SECONDS) complain(`the event loop of the server was held up for ${stall.toFixed(2)} s`)
      const faults = figure(figures, 'berth_egress_exchange_faults_total')
      if ((faults ?? 0) > 0) complain('the proxy has an exchange that ended by an exception')
      // A proxy that was killed a moment ago is still thought to be up. One that stays up and tells no number would look as if nothing were wrong.
      untold = faults === undefined && figure(figures, 'berth_egress_up') === 1 ? untold + 1 : 0
      if (untold === MOST_UNTOLD) complain('the proxy is up, and the server does not tell how many of its exchanges ended by an exception')
    }
    const all = await processes()
    const proxies = new Set(all.filter(isProxy).map(({ pid }) => pid))
    const now = new Map(all.filter(isWorker).map(({ pid, parent }) => [pid, parent]))
    if (kills === world.server.kills) {
      for (const [pid, parent] of workers) if (proxies.has(parent) && !now.has(pid) && !world.killed.has(pid)) complain(`worker ${pid} of the proxy ended by itself`)
    }
    workers = now
  }
  const loop = (async () => {
    while (!end.signal.aborted) {
      await lookOnce()
      await delay(POLL_MS)
    }
  })()
  return async () => {
    end.abort()
    await loop
    own.disable()
    say(`the event loop of the server was held up for ${worst.toFixed(2)} s at most`)
  }
}

async function metrics (): Promise<string | undefined> {
  try {
    return await (await fetch(METRICS, { signal: AbortSignal.timeout(ANSWER_MS) })).text()
  } catch {
    // It was killed, or has not begun to listen.
    return undefined
  }
}

function figure (text: string, name: string): number | undefined {
  const line = text.split('\n').find((each) => each.startsWith(`${name} `) || each.startsWith(`${name}{`))
  return line === undefined ? undefined : Number(line.split(' ').at(-1))
}
