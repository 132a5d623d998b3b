// Puts a build into the queue: from here on the queue decides when it runs, and whoever removes it from the queue must end it.
import type { Context } from '../context.ts'
import type { LiveBuild } from '../live-build.ts'
import { run } from './run.ts'

export function enqueue (context: Context, build: LiveBuild): void {
  const { id, builderId } = build
  context.live.set(id, build)
  context.queue.add({ id, builderId, run: async () => { await run(context, build) } })
}
