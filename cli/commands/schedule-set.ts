// `berth snapshot schedule set`
import { path } from '../api/path.ts'
import { wrongUsage } from '../failure.ts'
import type { Run } from '../spec.ts'

export const run: Run = async (session, input) => {
  const api = await session.api()
  const interval = input.text('interval')
  if (interval === undefined) throw wrongUsage('--interval is needed')
  const body = { interval, retention: { max_count: input.integer('maxCount'), max_age: input.text('maxAge') }, name_prefix: input.text('namePrefix') }
  await session.print(await api.call('PUT', path`/instances/${input.argument(0)}/snapshot-schedule`, { body }))
  return 0
}
