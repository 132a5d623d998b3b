// The origin of everything: images, their instances, and the snapshots of those, each with its size.
import { useState } from 'preact/hooks'
import type { Image, Instance, Snapshot } from '../api/types.ts'
import { Empty } from '../parts/empty.tsx'
import { Problem } from '../parts/problem.tsx'
import { Wait } from '../parts/wait.tsx'
import { useLoaded } from '../state/list.ts'
import { ForkInstance } from './fork-instance.tsx'
import { FamilyTree } from './family/tree.tsx'
import { Head } from './head.tsx'

interface Allocations { readonly allocations: ReadonlyArray<{ readonly instance_id: string, readonly memory_bytes: number, readonly disk_bytes: number }> }

export function Family () {
  const images = useLoaded<readonly Image[]>('/images', ['image'])
  const instances = useLoaded<readonly Instance[]>('/instances', ['instance'])
  const snapshots = useLoaded<readonly Snapshot[]>('/snapshots', ['snapshot'])
  const resources = useLoaded<Allocations>('/resources', ['instance'])
  const [forking, setForking] = useState<Instance | undefined>(undefined)
  const error = [images, instances, snapshots].map((each) => each.error.value).find((each) => each !== '')
  const all = instances.data.value
  return (
    <>
      <Head title='Family' count={all?.length} />
      <p class='quiet'>An image's disk is shared by all instances of it, read-only; what an instance takes itself, and each snapshot, stands beside it. Which instance a fork was made from is not in the API yet: forks stand at their image.</p>
      {error !== undefined && <Problem text={error} />}
      {all === undefined || images.data.value === undefined || snapshots.data.value === undefined ? error === undefined && <Wait what='the family' />
        : all.length === 0 && images.data.value.length === 0 ? <Empty title='Nobody is here yet.'>Pull an image, and create an instance of it.</Empty>
          : <FamilyTree onFork={setForking} images={images.data.value} instances={all} snapshots={snapshots.data.value} taken={new Map((resources.data.value?.allocations ?? []).map((each) => [each.instance_id, each]))} />}
      {forking !== undefined && <ForkInstance instance={forking} onClose={() => { setForking(undefined) }} />}
    </>
  )
}
