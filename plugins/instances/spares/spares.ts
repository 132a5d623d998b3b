// Spare VMs: what operations ask for, and whoever makes such VMs. Operations never wait for one to be made, and work without one.
import type { Jobs } from '../../../core/contracts/services.ts'
import type { BaseContext } from '../context.ts'
import type { Spares } from './contract.ts'
import { createDemand } from './demand.ts'
import { SpareFiller } from './filler.ts'
import { createIdle, type Idle } from './idle.ts'
import { createSparePool } from './pool.ts'

/** With what those work who make more than spare VMs. */
export interface SpareTools { readonly spares: Spares, readonly filler: SpareFiller, readonly idle: Idle }

export function createSpares (context: BaseContext, jobs: Jobs): SpareTools {
  const { spareIdleMs } = context.settings.templates
  const pool = createSparePool(spareIdleMs, context.log)
  const idle = createIdle(context.events, context.instances)
  const demand = createDemand(spareIdleMs)
  const filler = new SpareFiller({ context, pool, demand, idle, queue: jobs.queue('templates', { concurrency: 1 }) })
  const spares: Spares = {
    during: (work) => idle.during(work),
    note: (key, isMet) => { demand.note(key, isMet) },
    want (source) { filler.work(source.key, 'a spare VM', async (signal) => { await filler.fill(source, signal) }) },
    take: (key) => pool.take(key),
    giveBack: (spare) => { pool.put(spare) },
    async forget (key) { await Promise.all([filler.cancel(key), pool.endAll(key)]) },
    giveUpOne: async () => await pool.endOldest() || await filler.interrupt(),
    count: (key) => key === undefined ? pool.size : pool.count(key),
    // The filler first, so that a spare VM that is just being finished is ended, too.
    async close () { await Promise.all([filler.close(), pool.close()]) }
  }
  return { spares, filler, idle }
}
