// The common form of most pages: a list with a search, a button to create, and a text for an empty list.
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { CreateDialog, type CreateSpec } from '../forms/create-dialog.tsx'
import { Absent } from '../parts/absent.tsx'
import { Button } from '../parts/button.tsx'
import { Empty } from '../parts/empty.tsx'
import { Problem } from '../parts/problem.tsx'
import { Table, type Column } from '../parts/table.tsx'
import { Wait } from '../parts/wait.tsx'
import type { Loaded } from '../state/list.ts'
import { useSignalValue } from '../state/use-signal.ts'
import { Head } from './head.tsx'
import { Search, searchText } from './search.tsx'

interface ListPageProps<T> {
  readonly title: string
  readonly loaded: Loaded<readonly T[]>
  readonly columns: ReadonlyArray<Column<T>>
  readonly keyOf: (row: T) => string
  /** the text that the search looks in */
  readonly textOf: (row: T) => string
  readonly create?: CreateSpec & { readonly verb: string, readonly scope: string }
  readonly empty: { readonly title: string, readonly text: ComponentChildren }
  /** beside the search */
  readonly actions?: ComponentChildren
  readonly children?: ComponentChildren
}

export function ListPage<T> ({ title, loaded, columns, keyOf, textOf, create, empty, actions, children }: ListPageProps<T>) {
  const [isCreating, setCreating] = useState(false)
  const rows = useSignalValue(loaded.data)
  const error = useSignalValue(loaded.error)
  const isAbsent = useSignalValue(loaded.isAbsent)
  const { reload } = loaded
  const wanted = searchText().toLowerCase()
  const found = rows?.filter((row) => textOf(row).toLowerCase().includes(wanted))
  if (isAbsent) return <><Head title={title} /><Absent what={title.toLowerCase()} /></>
  return (
    <>
      <Head title={title} count={rows?.length}>
        <Search label={`Search ${title.toLowerCase()}`} />
        {create !== undefined && <Button kind='primary' scope={create.scope} onPress={() => { setCreating(true) }}>{create.verb}</Button>}
        {actions}
      </Head>
      {children}
      {error !== '' && <Problem text={error} onRetry={reload} />}
      {found === undefined ? error === '' && <Wait what={title.toLowerCase()} />
        : rows?.length === 0 ? <Empty title={empty.title}>{empty.text}</Empty>
          : found.length === 0 ? <Empty title={`Nothing matches “${wanted}”.`} />
            : <Table label={title} columns={columns} rows={found} keyOf={keyOf} />}
      {isCreating && create !== undefined && <CreateDialog spec={create} title={create.verb} onClose={() => { setCreating(false) }} onMade={() => { setCreating(false); reload() }} />}
    </>
  )
}
