// Prometheus' own look at the rules and expressions in config/.
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { packageRoot } from '../../core/package-root.ts'
import { testFolder } from '../helpers/folder.ts'
import { expressionsForOperators } from '../helpers/metric-expressions.ts'

const PROMTOOL = '/usr/bin/promtool'
const run = promisify(execFile)

t.test('promtool takes the alerts, and every expression of the dashboard', { skip: existsSync(PROMTOOL) ? false : 'there is no promtool (Debian: prometheus)' }, async (t) => {
  t.match((await run(PROMTOOL, ['check', 'rules', join(packageRoot, 'config/prometheus-alerts.yaml')])).stdout, /SUCCESS: \d+ rules found/)
  const queries = [...await expressionsForOperators()].filter(([place]) => place.startsWith('dashboard.panels'))
  t.ok(queries.length > 15)
  const file = join(testFolder(t), 'dashboard.json')
  await writeFile(file, JSON.stringify({ groups: [{ name: 'dashboard', rules: queries.map(([, expr], index) => ({ record: `panel:${index}`, expr })) }] }))
  t.match((await run(PROMTOOL, ['check', 'rules', file])).stdout, new RegExp(`SUCCESS: ${queries.length} rules found`))
})
