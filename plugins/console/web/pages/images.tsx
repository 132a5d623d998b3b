// Images: those that are here, those that are being pulled, and their users.
import { signal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import type { Image, Instance } from '../api/types.ts'
import { Button } from '../parts/button.tsx'
import { bytes } from '../parts/format.ts'
import { State } from '../parts/state.tsx'
import { Time } from '../parts/time.tsx'
import { useLoaded } from '../state/list.ts'
import { onChange } from '../state/live.ts'
import { href } from '../state/route.ts'
import { ImageDetail } from './images/detail.tsx'
import { ListPage } from './list-page.tsx'
import { askToRemove } from './remove.ts'

interface Progress { readonly received: number, readonly total: number | undefined, readonly at: number, readonly rate: number }

const progress = signal<ReadonlyMap<string, Progress>>(new Map())

export function Images () {
  const loaded = useLoaded<readonly Image[]>('/images', ['image'])
  const instances = useLoaded<readonly Instance[]>('/instances', ['instance'])
  const [shown, setShown] = useState<Image | undefined>(undefined)
  useEffect(() => onChange((event) => {
    if (event === 'everything' || event.type !== 'image.progress' || event.data === undefined) return
    const { name, id, received_bytes: received, total_bytes: total } = event.data
    const key = name ?? id
    const before = progress.peek().get(key)
    const at = Date.now()
    const rate = before === undefined || at === before.at ? 0 : Math.max(0, (Number(received) - before.received) / (at - before.at) * 1000)
    progress.value = new Map(progress.peek()).set(key, { received: Number(received), total: typeof total === 'number' ? total : undefined, at, rate })
  }), [])
  const users = (name: string): readonly Instance[] => (instances.data.value ?? []).filter(({ image }) => image === name)
  return (
    <ListPage
      title='Images' loaded={loaded} keyOf={({ name }) => name} textOf={({ name, digest, status }) => `${name} ${digest} ${status}`}
      create={{ verb: 'Pull image', scope: 'image:write', documented: '/images', first: ['name'] }}
      empty={{ title: 'No image yet.', text: <p>Pull one by its reference, such as <code>docker.io/library/nginx:latest</code>, or push one to the server's own registry.</p> }}
      columns={[
        { title: 'Name', kind: 'wide', sort: ({ name }) => name, cell: ({ name, digest }) => <span class='cut' title={digest}>{name}</span> },
        { title: 'Status', sort: ({ status }) => status, cell: ({ status, error }) => <><State value={status} reason={error} />{error !== null && <span class='fault'> {error}</span>}</> },
        { title: 'Pull', kind: 'number', cell: ({ name, status }) => status === 'pulling' ? <Pull of={progress.value.get(name)} /> : <span class='quiet'>–</span> },
        { title: 'Size', kind: 'number', sort: ({ size_bytes: size }) => size ?? 0, cell: ({ size_bytes: size }) => bytes(size) },
        { title: 'Used by', cell: ({ name }) => users(name).length === 0 ? <span class='quiet'>nothing</span> : <a href={href(['instances'], { q: name })}>{users(name).length} instance{users(name).length === 1 ? '' : 's'}</a> },
        { title: 'Since', sort: ({ created_at: at }) => at, cell: ({ created_at: at }) => <Time at={at} /> },
        { title: 'Actions', kind: 'actions', cell: (image) => <><Button label={`Details of ${image.name}`} unless={image.digest === '' && 'Its digest is not known yet.'} onPress={() => { setShown(image) }}>Details</Button><Remove of={image.name} users={users(image.name).length} done={loaded.reload} /></> }
      ]}
    >{shown !== undefined && <ImageDetail image={shown} onClose={() => { setShown(undefined) }} />}
    </ListPage>
  )
}

function Pull ({ of }: { readonly of: Progress | undefined }) {
  if (of === undefined) return <span class='quiet'>…</span>
  return <span>{of.total !== undefined && <progress max={of.total} value={of.received} aria-label='Pulled' />} {bytes(of.received)}{of.total !== undefined && ` of ${bytes(of.total)}`}, {bytes(of.rate)}/s</span>
}

function Remove ({ of: name, users, done }: { readonly of: string, readonly users: number, readonly done: () => void }) {
  return <Button label={`Delete ${name}`} scope='image:delete' unless={users > 0 && `${users} instance${users === 1 ? ' uses' : 's use'} it.`} onPress={() => { askToRemove({ url: `/images/${encodeURIComponent(name)}`, name, goes: [`The name ${name}, and its disk unless another name has it`], done }) }}>Delete</Button>
}
