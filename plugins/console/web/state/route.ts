// The current page: the part of the address behind the #, so that links and the browser's own buttons work.
import { computed, signal } from '@preact/signals'

export interface Route {
  /** `instances`, `<id>`, `logs` */
  readonly parts: readonly string[]
  readonly query: URLSearchParams
}

const hash = signal(location.hash)
addEventListener('hashchange', () => { hash.value = location.hash })

export const route = computed<Route>(() => {
  const [place = '', query = ''] = hash.value.replace(/^#\/?/, '').split('?', 2)
  return { parts: place.split('/').filter((part) => part !== '').map(decoded), query: new URLSearchParams(query) }
})

export function href (parts: readonly string[], query: Readonly<Record<string, string>> = {}): string {
  const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== '')).toString()
  return `#/${parts.map(encodeURIComponent).join('/')}${asked === '' ? '' : `?${asked}`}`
}

export function go (parts: readonly string[], query: Readonly<Record<string, string>> = {}): void {
  location.hash = href(parts, query)
}

/** Changes the part behind the `?` without a new entry in the history. */
export function setQuery (changes: Readonly<Record<string, string>>): void {
  const { parts, query } = route.peek()
  const next = href(parts, { ...Object.fromEntries(query), ...changes })
  history.replaceState(null, '', next)
  hash.value = next
}

function decoded (part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
