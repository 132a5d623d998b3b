// Requests through the proxy, with their credentials and decisions; live, for all instances.
import type { Instance } from '../api/types.ts'
import { EgressTable } from './egress/egress-table.tsx'
import { Absent } from '../parts/absent.tsx'
import { Empty } from '../parts/empty.tsx'
import { Problem } from '../parts/problem.tsx'
import { useEgress } from '../state/egress.ts'
import { useLoaded } from '../state/list.ts'
import { route, setQuery } from '../state/route.ts'
import { TryPolicy } from './egress/try-policy.tsx'
import { Head } from './head.tsx'
import { Search, searchText } from './search.tsx'

export function Egress () {
  const instances = useLoaded<readonly Instance[]>('/instances', ['instance'])
  const all = (instances.data.value ?? []).filter(({ state, network }) => state === 'Running' && network.enabled)
  const { rows, modes, error, isAbsent } = useEgress(all)
  const mediated = all.filter(({ id }) => (modes.value.get(id) ?? 'none') !== 'none')
  const wanted = searchText().toLowerCase()
  const decision = route.value.query.get('decision') ?? ''
  const found = rows.value.filter(({ instanceName, host, path = '', reason = '', injected }) => (decision === '' || (decision === 'refused') === (reason !== '')) && [instanceName, host + path, reason, ...injected].join(' ').toLowerCase().includes(wanted))
  return (
    <>
      <Head title='Egress' count={rows.value.length}>
        <Search label='Search instance, host, path, credential' />
        <select class='filter' aria-label='Decision' value={decision} onChange={(event) => { setQuery({ decision: event.currentTarget.value }) }}><option value=''>Every decision</option><option value='through'>Let through</option><option value='refused'>Refused</option></select>
        <TryPolicy />
      </Head>
      {error.value !== '' && <Problem text={error.value} />}
      {isAbsent.value ? <Absent what='mediated way out' /> : mediated.length === 0 ? <Empty title='No running instance has a mediated way out.'>Create one with <code>network.egress.enabled</code>: its requests go through a proxy that decides, records, and puts credentials in that the instance never sees.</Empty>
        : found.length === 0 ? <Empty title={rows.value.length === 0 ? 'No request yet.' : 'No request matches.'}>{mediated.length} instance{mediated.length === 1 ? '' : 's'} with a policy: {mediated.map(({ name }) => name).join(', ')}.</Empty>
          : <EgressTable label='Requests' rows={found} />}
    </>
  )
}
