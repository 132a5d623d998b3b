// The plugins of the server: which run, and why the others do not.
import { Problem } from '../../parts/problem.tsx'
import { State } from '../../parts/state.tsx'
import { Table } from '../../parts/table.tsx'
import { Wait } from '../../parts/wait.tsx'
import type { Loaded } from '../../state/list.ts'

export interface PluginReport { readonly id: string, readonly state: string, readonly reason: string | null, readonly start_ms: number | null }

export function HostPlugins ({ plugins }: { readonly plugins: Loaded<readonly PluginReport[]> | undefined }) {
  if (plugins === undefined) return null
  const { data, error, reload } = plugins
  if (data.value === undefined) return error.value === '' ? <Wait what='which plugins there are' /> : <Problem text={error.value} onRetry={reload} />
  return (
    <section aria-label='Plugins'>
      {error.value !== '' && <Problem text={error.value} onRetry={reload} />}
      <Table
        label='Plugins' rows={data.value} keyOf={({ id }) => id} columns={[
          { title: 'Plugin', sort: ({ id }) => id, cell: ({ id }) => id }, { title: 'State', sort: ({ state }) => state, cell: ({ state, reason }) => <State value={state} reason={reason} /> }, { title: 'Start', kind: 'number', sort: (row) => row.start_ms ?? 0, cell: (row) => row.start_ms === null ? '–' : `${row.start_ms} ms` }, { title: 'Why', kind: 'wide', cell: ({ reason }) => reason ?? '' }
        ]}
      />
    </section>
  )
}
