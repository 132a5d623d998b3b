// Host names that lead to programs in instances, and their certificates.
import { path } from '../api/call.ts'
import { Button } from '../parts/button.tsx'
import { Time } from '../parts/time.tsx'
import { useLoaded } from '../state/list.ts'
import { ListPage } from './list-page.tsx'
import { askToRemove } from './remove.ts'

interface Rule { readonly match: { readonly hostname: string, readonly port?: number }, readonly target: { readonly instance: string, readonly port: number }, readonly tls?: boolean }
interface Ingress { readonly id: string, readonly name: string, readonly rules: readonly Rule[], readonly created_at: string, readonly served?: boolean }

export function Ingresses () {
  const loaded = useLoaded<readonly Ingress[]>('/ingresses', ['ingress'])
  return (
    <ListPage
      title='Ingress' loaded={loaded} keyOf={({ id }) => id} textOf={({ name, rules }) => `${name} ${rules.map(({ match }) => match.hostname).join(' ')}`}
      create={{ verb: 'Create ingress', scope: 'ingress:write', documented: '/ingresses', first: ['name', 'rules'], initial: { rules: '[\n  { "match": { "hostname": "app.example.com" }, "target": { "instance": "NAME", "port": 8080 }, "tls": true }\n]' } }}
      empty={{ title: 'No ingress yet.', text: <p>An ingress gives a program in an instance a name, with a certificate. It wakes an instance that is in standby.</p> }}
      columns={[
        { title: 'Name', cell: ({ name }) => name },
        { title: 'Rules', kind: 'wide', cell: ({ rules }) => rules.map(({ match, target, tls }, index) => <div key={index}>{tls === true ? 'https' : 'http'}://{match.hostname} → {target.instance}:{target.port}</div>) },
        { title: 'Served', cell: ({ served }) => served === undefined ? '–' : served ? 'yes' : 'not yet' },
        { title: 'Created', cell: ({ created_at: at }) => <Time at={at} /> },
        { title: 'Actions', kind: 'actions', cell: ({ id, name, rules }) => <Button label={`Delete ${name}`} scope='ingress:delete' onPress={() => { askToRemove({ url: path`/ingresses/${id}`, name, goes: rules.map(({ match }) => `${match.hostname} is not answered any more`), done: loaded.reload }) }}>Delete</Button> }
      ]}
    />
  )
}
