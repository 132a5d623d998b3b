// `berth pull`
import { forEach } from '../output/results.ts'
import { pullImage } from '../pull.ts'
import type { Run } from '../spec.ts'

export const run: Run = async (session, input) => {
  const api = await session.api()
  const tags = input.pairs('tag')
  return await forEach(session, input.many(0), async (name) => input.flag('detach') ? await api.call('POST', '/images', { body: { name, tags } }) : await pullImage(session, api, name, tags))
}
