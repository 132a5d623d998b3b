// `berth ingress ls`
import { printList } from '../output/list.ts'
import { age } from '../output/values.ts'
import type { Run } from '../spec.ts'
import type { Ingress, IngressRule } from '../views.ts'

export const run: Run = async (session, input) => await printList(session, await (await session.api()).list<Ingress>('/ingresses', { tags: input.pairs('tag') }), {
  key: ({ id }) => id,
  columns: [
    ['NAME', ({ name }) => name], ['RULES', ({ rules }) => rules.map(ruleText).join(', ')], ['SERVED', ({ served, reason }) => served ? 'yes' : reason ?? 'no'], ['CREATED', ({ created_at: time }) => age(time)]
  ]
})

function ruleText ({ match: { hostname, port, path = '' }, target, tls }: IngressRule): string {
  return `http${tls ? 's' : ''}://${hostname}${port === (tls ? 443 : 80) ? '' : `:${port}`}${path === '/' ? '' : path}->${target.instance}:${target.port}`
}
