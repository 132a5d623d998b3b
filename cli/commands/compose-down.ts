// `berth compose down`
import { path } from '../api/path.ts'
import { nameOf } from '../compose/name-of.ts'
import { ownedInstances, ownedVolumes } from '../compose/owned.ts'
import { forEach } from '../output/results.ts'
import type { Run } from '../spec.ts'
import { confirmed } from '../terminal/ask.ts'

export const run: Run = async (session, input) => {
  const project = await nameOf(session, input)
  const api = await session.api()
  // In reverse order: a service was created after those that it depends on.
  const instances = (await ownedInstances(api, project)).map(({ instance }) => instance).sort((a, b) => b.created_at < a.created_at ? -1 : 1)
  const volumes = input.flag('volumes') ? await ownedVolumes(api, project) : []
  const named = [...instances, ...volumes].map(({ name }) => name)
  if (named.length === 0 || !await confirmed(session, `Delete ${named.join(', ')} with all that is on ${named.length === 1 ? 'its disk' : 'their disks'}?`)) return 0
  const code = await forEach(session, instances.map(({ name }) => name), async (name) => await api.call('DELETE', path`/instances/${name}`))
  return code === 0 ? await forEach(session, volumes.map(({ name }) => name), async (name) => await api.call('DELETE', path`/volumes/${name}`)) : code
}
