// `berth auto-standby status`
import { path } from '../api/path.ts'
import { age } from '../output/values.ts'
import type { Run } from '../spec.ts'
import type { AutoStandbyStatus } from '../views.ts'

export const run: Run = async (session, input) => {
  const status = await (await session.api()).call<AutoStandbyStatus>('GET', path`/instances/${input.argument(0)}/auto-standby/status`)
  await session.print(status, {
    headings: ['STATUS', 'REASON', 'CONNECTIONS', 'KEPT AWAKE BY', 'IDLE TIMEOUT', 'STANDBY', 'HELD UNTIL'],
    rows: [[status.status, status.reason, String(status.active_inbound_connections), status.kept_awake_by.join(', ') || '-', status.idle_timeout ?? '-', age(status.next_standby_at), age(status.hold_until)]]
  })
  return 0
}
