// `berth rm`
import { path } from '../api/path.ts'
import { wrongUsage } from '../failure.ts'
import { forEach } from '../output/results.ts'
import type { Run } from '../spec.ts'
import { confirmed } from '../terminal/ask.ts'
import type { Instance } from '../views.ts'

export const run: Run = async (session, input) => {
  const api = await session.api()
  const force = input.flag('force')
  const named = input.many(0)
  if (input.flag('all') === (named.length > 0)) throw wrongUsage('name instances, or say --all')
  const all = named.length > 0 ? named : (await api.list<Instance>('/instances')).map(({ name }) => name)
  if (all.length === 0 || !(force || await confirmed(session, `Delete ${all.join(', ')} with ${all.length === 1 ? 'its disk' : 'their disks'}?`))) return 0
  return await forEach(session, all, async (name) => await api.call('DELETE', path`/instances/${name}`, { query: { graceful_shutdown: !force } }))
}
