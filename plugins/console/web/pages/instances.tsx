// All instances: their states, their use of resources, and actions on several at once.
import { useState } from 'preact/hooks'
import type { Instance } from '../api/types.ts'
import { CreateDialog } from '../forms/create-dialog.tsx'
import { Button } from '../parts/button.tsx'
import { Empty } from '../parts/empty.tsx'
import { Problem } from '../parts/problem.tsx'
import { State } from '../parts/state.tsx'
import { Table, type Column } from '../parts/table.tsx'
import { Tags } from '../parts/tags.tsx'
import { Time } from '../parts/time.tsx'
import { Wait } from '../parts/wait.tsx'
import { useRows } from '../state/list.ts'
import { complain } from '../state/notices.ts'
import { href, route, setQuery } from '../state/route.ts'
import { createInstance } from './create-instance.ts'
import { Head } from './head.tsx'
import { ACTIONS, askToDelete, unfit } from './instance-actions.ts'
import { LiveFigures } from './live-figures.tsx'
import { Search, searchText } from './search.tsx'

const COLUMNS: ReadonlyArray<Column<Instance>> = [
  { title: 'Name', kind: 'wide', sort: ({ name }) => name, cell: ({ id, name, tags }) => <><a class='name' href={href(['instances', id])}>{name}</a><Tags tags={tags} /></> },
  { title: 'State', sort: ({ state }) => state, cell: ({ state, state_error: error, restore_error: restore, exit_message: exit }) => <State value={state} reason={error ?? restore ?? exit} /> },
  { title: 'Image', kind: 'wide', sort: ({ image }) => image, cell: ({ image }) => <span class='cut' title={image}>{image}</span> },
  { title: 'Address', cell: ({ network }) => network.ip === null || network.ip === undefined ? <span class='quiet'>–</span> : <span class='whole'>{network.ip}</span> },
  { title: 'CPU', kind: 'number', cell: (instance) => <LiveFigures instance={instance} figure='cpu' /> },
  { title: 'Memory', kind: 'number', cell: (instance) => <LiveFigures instance={instance} figure='memory' /> },
  { title: 'Network', kind: 'number', cell: (instance) => <LiveFigures instance={instance} figure='network' /> },
  { title: 'Size', kind: 'number', cell: ({ vcpus, size }) => `${vcpus} × ${size}` },
  { title: 'Created', sort: ({ created_at: at }) => at, cell: ({ created_at: at }) => <Time at={at} /> }
]

export function Instances () {
  const loaded = useRows<Instance>('/instances', 'instance')
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const [isCreating, setCreating] = useState(false)
  const all = loaded.data.value
  const error = loaded.error.value
  const { reload } = loaded
  const wanted = searchText().toLowerCase()
  const state = route.value.query.get('state') ?? ''
  const found = all?.filter((instance) => (state === '' || instance.state === state) && textOf(instance).includes(wanted)) ?? []
  const picked = found.filter(({ id }) => chosen.has(id))
  const create = <Button kind='primary' scope='instance:write' onPress={() => { setCreating(true) }}>Create instance</Button>
  return (
    <>
      <Head title='Instances' count={all?.length}>
        <Search label='Search name, image, address, tag' />
        <select class='filter' aria-label='State' value={state} onChange={(event) => { setQuery({ state: event.currentTarget.value }) }}>
          <option value=''>Every state</option>{[...new Set([...(all ?? []).map((each) => each.state), ...state === '' ? [] : [state]])].sort().map((each) => <option key={each}>{each}</option>)}
        </select>
        {create}
      </Head>
      {error !== '' && <Problem text={error} onRetry={reload} />}
      {picked.length > 0 && <div class='bulk' role='region' aria-label='Selected instances'><span>{picked.length} selected</span>
        {ACTIONS.map((action) => <Button
          key={action.verb} scope='instance:write' unless={unfit(action, picked)} onPress={async () => {
            await Promise.all(picked.map(async (instance) => { await action.run(instance).catch(complain) }))
            setChosen(new Set())
          }}
                                 >{action.verb}
        </Button>)}
        <Button scope='instance:write' kind='danger' onPress={async () => { await askToDelete(picked, () => { setChosen(new Set()) }) }}>Delete</Button>
        <Button onPress={() => { setChosen(new Set()) }}>Clear</Button>
                            </div>}
      {all === undefined ? error === '' && <Wait what='instances' />
        : all.length === 0 ? <Empty title='No instance yet.'><p>An instance is a virtual machine made from an OCI image. Create the first one here, or with <code>berth run IMAGE</code>.</p></Empty>
          : found.length === 0 ? <Empty title='No instance matches.'><Button onPress={() => { setQuery({ q: '', state: '' }) }}>Show all {all.length}</Button></Empty>
            : <Table label='Instances' columns={COLUMNS} rows={found} keyOf={({ id }) => id} selection={{ chosen, nameOf: ({ name }) => name, choose: setChosen }} />}
      {isCreating && <CreateDialog spec={createInstance} title='Create instance' onClose={() => { setCreating(false) }} onMade={() => { setCreating(false) }} />}
    </>
  )
}

function textOf ({ id, name, image, network, tags }: Instance): string {
  return [id, name, image, network.ip ?? '', ...Object.entries(tags ?? {}).map((tag) => tag.join('='))].join(' ').toLowerCase()
}
