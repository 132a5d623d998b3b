// The API's own document, for tests that hold answers against it.
/** The same with each `$ref` replaced by what it points to; one inside of itself stands for anything. */
export function withoutReferences<T> (value: T, root: unknown, inside: readonly string[] = []): T {
  if (Array.isArray(value)) return value.map((item: unknown) => withoutReferences(item, root, inside)) as T
  if (value === null || typeof value !== 'object') return value
  const reference: unknown = '$ref' in value ? value.$ref : undefined
  if (typeof reference === 'string') {
    if (inside.includes(reference)) return {} as T
    return withoutReferences(pointed(root, reference), root, [...inside, reference]) as T
  }
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withoutReferences(item, root, inside)])) as T
}

function pointed (root: unknown, reference: string): unknown {
  return reference.slice(2).split('/').reduce<unknown>((value, key) => value !== null && typeof value === 'object' ? Reflect.get(value, key.replaceAll('~1', '/')) : undefined, root)
}
