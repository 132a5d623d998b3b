// The tree of what was made of what: images, templates, instances, their forks and snapshots. Pure.
import type { Image, Instance, Snapshot, Template } from '../../api/types.ts'

export type Node = { readonly key: string, readonly children: readonly Node[] } & Member

export type Member =
  | { readonly kind: 'image', readonly name: string, readonly image: Image | undefined, readonly users: number }
  | { readonly kind: 'template', readonly id: string, readonly template: Template | undefined, readonly images: number }
  | { readonly kind: 'instance', readonly instance: Instance, readonly lost: string | undefined }
  | { readonly kind: 'snapshot', readonly snapshot: Snapshot }
  | { readonly kind: 'group', readonly title: string, readonly note: string }

export interface Facts {
  readonly images: readonly Image[]
  readonly instances: readonly Instance[]
  readonly snapshots: readonly Snapshot[]
  readonly templates: readonly Template[]
}

export function rootsOf ({ images, instances, snapshots, templates }: Facts): Node[] {
  const ids = new Set([...instances, ...snapshots].map(({ id }) => id))
  const forks = groupBy(instances.filter(({ source }) => isCopy(source) && ids.has(source.id)), ({ source }) => source?.id ?? '')
  const taken = groupBy(snapshots, ({ source_instance_id: source }) => source)
  const snapshotNode = (snapshot: Snapshot): Node => ({ kind: 'snapshot', key: snapshot.id, snapshot, children: (forks.get(snapshot.id) ?? []).map(instanceNode) })
  const instanceNode = (instance: Instance): Node => ({
    kind: 'instance', key: instance.id, instance, lost: lostSource(instance, ids), children: [...(taken.get(instance.id) ?? []).map(snapshotNode), ...(forks.get(instance.id) ?? []).map(instanceNode)]
  })
  const ofImage = groupBy(instances, ({ image }) => image)
  const imagesOf = groupBy(instances.filter(({ source }) => source?.kind === 'template'), ({ source }) => source?.id ?? '')
  const templateNode = (image: string, id: string, made: readonly Instance[]): Node => ({
    kind: 'template', key: `${image} ${id}`, id, template: templates.find((each) => each.id === id), images: new Set((imagesOf.get(id) ?? []).map((each) => each.image)).size, children: made.map(instanceNode)
  })
  const imageNode = (name: string, image: Image | undefined): Node => {
    const all = ofImage.get(name) ?? []
    const own = all.filter(({ source }) => !(isCopy(source) && ids.has(source.id)))
    const cloned = groupBy(own.filter(({ source }) => source?.kind === 'template'), ({ source }) => source?.id ?? '')
    return { kind: 'image', key: name, name, image, users: all.length, children: [...[...cloned].map(([id, made]) => templateNode(name, id, made)), ...own.filter(({ source }) => source?.kind !== 'template').map(instanceNode)] }
  }
  const known = new Set(images.map(({ name }) => name))
  const idle = templates.filter(({ id }) => !imagesOf.has(id))
  const orphans = snapshots.filter(({ source_instance_id: source }) => !ids.has(source))
  return [
    ...images.map((image) => imageNode(image.name, image)),
    ...[...ofImage.keys()].filter((name) => !known.has(name)).map((name) => imageNode(name, undefined)),
    ...group(' templates', 'Templates in waiting', 'no instance is from them now', idle.map((template): Node => ({ kind: 'template', key: template.id, id: template.id, template, images: 0, children: [] }))),
    ...group(' orphans', 'Instances that are gone', 'their snapshots stay', orphans.map(snapshotNode))
  ]
}

function group (key: string, title: string, note: string, children: readonly Node[]): Node[] {
  return children.length === 0 ? [] : [{ kind: 'group', key, title, note, children }]
}

type Source = NonNullable<Instance['source']>

function isCopy (source: Source | undefined): source is Source {
  return source?.kind === 'instance' || source?.kind === 'snapshot'
}

/** What it was made of, when that is gone. */
function lostSource ({ source }: Instance, ids: ReadonlySet<string>): string | undefined {
  return isCopy(source) && !ids.has(source.id) ? `${source.kind} ${source.name ?? source.id.slice(0, 12)}` : undefined
}

function groupBy<T> (items: readonly T[], keyOf: (item: T) => string): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) groups.set(keyOf(item), [...groups.get(keyOf(item)) ?? [], item])
  return groups
}
