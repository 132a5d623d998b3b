// The expressions that config/ has for Prometheus and Grafana.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'yaml'
import { isRecord } from '../../core/json/is-record.ts'
import { packageRoot } from '../../core/package-root.ts'

/** Of the alerts and the dashboard, by where they stand. */
export async function expressionsForOperators (): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>()
  const add = (place: string, value: unknown): void => {
    if (Array.isArray(value)) value.forEach((item, index) => { add(`${place}.${index}`, item) })
    else if (isRecord(value)) for (const [key, item] of Object.entries(value)) add(`${place}.${key}`, item)
    else if (typeof value === 'string' && /\.(?:expr|query)$/.test(place)) found.set(place, value)
  }
  add('alerts', parse(await readFile(join(packageRoot, 'config/prometheus-alerts.yaml'), 'utf8')))
  add('dashboard', JSON.parse(await readFile(join(packageRoot, 'config/grafana-dashboard.json'), 'utf8')))
  return found
}
