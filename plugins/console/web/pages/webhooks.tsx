// Webhooks: their receivers, their filters, and whether deliveries succeed.
import { useState } from 'preact/hooks'
import { path } from '../api/call.ts'
import { Button } from '../parts/button.tsx'
import { Copy } from '../parts/copy.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { State } from '../parts/state.tsx'
import { Time } from '../parts/time.tsx'
import { useLoaded } from '../state/list.ts'
import { ListPage } from './list-page.tsx'
import { askToRemove } from './remove.ts'

interface Webhook { readonly id: string, readonly url: string, readonly status: string, readonly enabled: boolean, readonly failed_attempts: number, readonly last_error: { readonly message: string } | null, readonly last_delivery: { readonly delivered_at: string } | null }

export function Webhooks () {
  const loaded = useLoaded<readonly Webhook[]>('/webhooks', ['webhook'])
  const [secret, setSecret] = useState<string | undefined>(undefined)
  return (
    <>
      <ListPage
        title='Webhooks' loaded={loaded} keyOf={({ id }) => id} textOf={({ id, url, status }) => `${id} ${url} ${status}`}
        create={{ verb: 'Create webhook', scope: 'webhook:write', documented: '/webhooks', first: ['url', 'filter'], onMade: (answer) => { setSecret((answer as { readonly secret: string }).secret) } }}
        empty={{ title: 'No webhook yet.', text: <p>A webhook posts what changes here to a server of yours.</p> }}
        columns={[
          { title: 'URL', kind: 'wide', cell: ({ url }) => <span class='cut' title={url}>{url}</span> },
          { title: 'Status', sort: ({ status }) => status, cell: ({ status, enabled, last_error: error }) => enabled ? <State value={status} reason={error?.message} /> : 'turned off' },
          { title: 'Failed', kind: 'number', cell: ({ failed_attempts: failed, last_error: error }) => <span title={error?.message}>{failed}</span> },
          { title: 'Last delivery', cell: ({ last_delivery: last }) => <Time at={last?.delivered_at} /> },
          { title: 'Actions', kind: 'actions', cell: ({ id, url }) => <Button label={`Delete ${url}`} scope='webhook:write' onPress={() => { askToRemove({ url: path`/webhooks/${id}`, name: 'webhook', goes: [`${url} is not told of anything any more`], done: loaded.reload }) }}>Delete</Button> }
        ]}
      />
      {secret !== undefined && <Dialog title="The webhook's secret" onClose={() => { setSecret(undefined) }}><p>Deliveries are signed with it. It is shown now and never again.</p><Copy label='secret' text={secret} /></Dialog>}
    </>
  )
}
