// `berth ports rm`
import { path } from '../api/path.ts'
import { EXIT } from '../exit-codes.ts'
import { Failure } from '../failure.ts'
import { forEach } from '../output/results.ts'
import { namedPorts } from '../publish.ts'
import type { Run } from '../spec.ts'
import { confirmed } from '../terminal/ask.ts'
import type { PublishedPort } from '../views.ts'

export const run: Run = async (session, input) => {
  const api = await session.api()
  const instance = input.argument(0)
  const named = input.many(1)
  if (!await confirmed(session, `Take ${named.join(', ')} away from ${instance}?`)) return 0
  const published = await api.list<PublishedPort>(path`/instances/${instance}/ports`)
  return await forEach(session, named, async (text) => {
    const [port, ...others] = namedPorts(published, text)
    if (port === undefined) throw new Failure(`${instance} has no published port ${text}`, { exitCode: EXIT.notFound, hint: `berth ports ls ${instance}` })
    if (others.length > 0) throw new Failure(`${text} is several ports of ${instance}`, { exitCode: EXIT.conflict, hint: 'write it with its address and protocol, as 127.0.0.1:53/udp' })
    return await api.call('DELETE', path`/instances/${instance}/ports/${port.id}`)
  })
}
