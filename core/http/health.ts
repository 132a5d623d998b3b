// Whether the server can work: its database must answer soon.
import type { Knex } from 'knex'
import { Gauge, type Registry } from 'prom-client'
import { DatabaseUnavailable } from '../db/deadline.ts'

const PATIENCE_MS = 2000
/** A metric that is not told within 2 s is left out. */
const METRIC_PATIENCE_MS = 1000

/** @throws DatabaseUnavailable */
export type HealthCheck = (patienceMs?: number) => Promise<void>

/** Makes the check behind `GET /health`. Requests at the same time share one query. */
export function healthCheck (database: Knex): HealthCheck {
  let asking: Promise<unknown> | undefined
  return async (patienceMs = PATIENCE_MS) => {
    asking ??= database.raw('SELECT 1').then(() => true, () => false).finally(() => { asking = undefined })
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<boolean>((resolve) => { timer = setTimeout(resolve, patienceMs, false) })
    const answers = await Promise.race([asking, late])
    clearTimeout(timer)
    if (answers !== true) throw DatabaseUnavailable()
  }
}

/** Adds what the check finds to the metrics. */
export function healthMetric (metrics: Registry, check: HealthCheck): void {
  metrics.registerMetric(new Gauge({
    name: 'berth_database_up',
    help: 'Whether the database answers within a second',
    registers: [],
    async collect () { this.set(await check(METRIC_PATIENCE_MS).then(() => 1, () => 0)) }
  }))
}
