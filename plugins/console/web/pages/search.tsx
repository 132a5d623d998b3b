// The search of a list; the searched text is in the address.
import { route, setQuery } from '../state/route.ts'

export function searchText (): string {
  return route.value.query.get('q') ?? ''
}

export function Search ({ label }: { readonly label: string }) {
  return <input type='search' class='search' placeholder={label} aria-label={label} value={searchText()} onInput={(event) => { setQuery({ q: event.currentTarget.value }) }} />
}
