// What was made of what: images, templates, instances, their forks and snapshots, with what each shares and costs.
import { useState } from 'preact/hooks'
import type { Image, Instance, Snapshot, Template } from '../api/types.ts'
import { Empty } from '../parts/empty.tsx'
import { Problem } from '../parts/problem.tsx'
import { Wait } from '../parts/wait.tsx'
import { useLoaded } from '../state/list.ts'
import type { Opened } from './family/actions.tsx'
import { Cost } from './family/cost.tsx'
import { FamilyTree } from './family/tree.tsx'
import { ForkInstance } from './fork-instance.tsx'
import { ForkSnapshot } from './fork-snapshot.tsx'
import { Head } from './head.tsx'
import { ImageDetail } from './images/detail.tsx'

interface Allocations { readonly allocations: ReadonlyArray<{ readonly instance_id: string, readonly memory_bytes: number, readonly disk_bytes: number }> }

export function Family () {
  const images = useLoaded<readonly Image[]>('/images', ['image'])
  const instances = useLoaded<readonly Instance[]>('/instances', ['instance'])
  const snapshots = useLoaded<readonly Snapshot[]>('/snapshots', ['snapshot'])
  // A template is made behind an instance, without an event of its own.
  const templates = useLoaded<readonly Template[]>('/templates', ['instance'])
  const resources = useLoaded<Allocations>('/resources', ['instance'])
  const [opened, setOpened] = useState<Opened | undefined>(undefined)
  const error = [images, instances, snapshots].map((each) => each.isAbsent.value ? '' : each.error.value).find((each) => each !== '')
  const taken = snapshots.isAbsent.value ? [] : snapshots.data.value
  const all = instances.data.value
  const close = (): void => { setOpened(undefined) }
  const reload = (): void => { for (const each of [images, instances, snapshots, templates]) each.reload() }
  return (
    <>
      <Head title='Family' count={all?.length} />
      <p class='quiet'>An image has one disk, which all instances of it read. A template is the memory of a booted VM of one shape, of which instances of any image come up; each then has memory of its own. What an instance really takes, and shares, is measured by its button Cost.</p>
      {error !== undefined && <Problem text={error} />}
      {all === undefined || images.data.value === undefined || taken === undefined ? error === undefined && <Wait what='the family' />
        : all.length === 0 && images.data.value.length === 0 ? <Empty title='Nobody is here yet.'>Pull an image, and create an instance of it.</Empty>
          : <FamilyTree open={setOpened} reload={reload} facts={{ images: images.data.value, instances: all, snapshots: taken, templates: templates.data.value ?? [] }} promised={new Map((resources.data.value?.allocations ?? []).map((each) => [each.instance_id, each]))} />}
      {opened?.what === 'fork' && <ForkInstance instance={opened.instance} onClose={close} />}
      {opened?.what === 'cost' && <Cost instance={opened.instance} onClose={close} />}
      {opened?.what === 'fork-snapshot' && <ForkSnapshot snapshot={opened.snapshot} onClose={close} />}
      {opened?.what === 'image' && <ImageDetail image={opened} onClose={close} />}
    </>
  )
}
