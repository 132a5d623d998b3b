// `berth webhook create`: the secret is printed once.
import type { Run } from '../spec.ts'
import type { Webhook } from '../views.ts'

export const run: Run = async (session, input) => {
  const api = await session.api()
  const resources = input.list('resource').flatMap((text) => text.split(','))
  const ids = input.list('id')
  const tags = input.pairs('tag')
  const filter = { ...resources.length === 0 ? {} : { resources }, ...ids.length === 0 ? {} : { ids }, ...tags === undefined ? {} : { tags } }
  const made = await api.call<Webhook & { readonly secret: string }>('POST', '/webhooks', { body: { url: input.argument(0), ...Object.keys(filter).length === 0 ? {} : { filter } } })
  if (session.format === 'table') {
    session.line(made.secret)
    session.say(`webhook ${made.id} made; its secret is shown only now`)
  } else await session.print(made)
  return 0
}
