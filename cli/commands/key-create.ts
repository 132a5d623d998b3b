// `berth key create`: the key is printed once.
import { wrongUsage } from '../failure.ts'
import type { Run } from '../spec.ts'

export const run: Run = async (session, input) => {
  const api = await session.api()
  const scopes = input.list('scope').flatMap((text) => text.split(','))
  if (scopes.length === 0) throw wrongUsage('--scope is needed', 'such as --scope instance:read,image:read; "*" is all that this key may do')
  const repositories = input.list('repository')
  const made = await api.call<{ readonly id: string, readonly key: string }>('POST', '/keys', { body: { name: input.argument(0), scopes, ...repositories.length === 0 ? {} : { repositories }, expires_in: input.text('expiresIn') } })
  if (session.format === 'table') {
    session.line(made.key)
    session.say(`key ${made.id} made; it is shown only now`)
  } else await session.print(made)
  return 0
}
