// `berth standby`
import { path } from '../api/path.ts'
import { forEach } from '../output/results.ts'
import type { Run } from '../spec.ts'

export const run: Run = async (session, input) => {
  const api = await session.api()
  const algorithm = input.text('compression')
  const level = input.integer('compressionLevel')
  const delay = input.text('compressionDelay')
  const body = {
    ...algorithm === undefined ? {} : { compression: algorithm === 'none' ? { enabled: false } : { enabled: true, algorithm, ...level === undefined ? {} : { level } } },
    ...delay === undefined ? {} : { compression_delay: delay }
  }
  return await forEach(session, input.many(0), async (name) => await api.call('POST', path`/instances/${name}/standby`, { body }))
}
