// Labels, each as key and value.
export function Tags ({ tags }: { readonly tags: Readonly<Record<string, string>> | undefined }) {
  const all = Object.entries(tags ?? {})
  return all.length === 0 ? null : <span class='tags'>{all.map(([key, value]) => <span key={key} class='tag' title={`${key}=${value}`}>{key}={value}</span>)}</span>
}
