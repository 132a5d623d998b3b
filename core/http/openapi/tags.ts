// The groups of the document: core's own, and those that the manifests of plugins name.

export interface DocumentTag {
  /** the first part of the paths of its routes; a route may name another group */
  readonly name: string
  readonly description: string
  /** people read the groups in this order; absent: behind those that have one */
  readonly place?: number
}

const OWN_TAGS: readonly DocumentTag[] = [
  { name: 'keys', description: 'Who may use the API, for what, where and until when' },
  { name: 'server', description: 'This server and what it can do' }
]

/** Core's own come last. Of two of one name, the first counts. */
export function documentTags (manifests: ReadonlyArray<{ readonly tags?: readonly DocumentTag[] }>): DocumentTag[] {
  const named = manifests.flatMap(({ tags = [] }) => tags).sort((a, b) => placeOf(a) - placeOf(b) || (a.name < b.name ? -1 : 1))
  const all = [...named, ...OWN_TAGS]
  return all.filter(({ name }, index) => all.findIndex((tag) => tag.name === name) === index)
}

// Not infinite: two without a place would have no difference.
function placeOf ({ place = Number.MAX_SAFE_INTEGER }: DocumentTag): number {
  return place
}
