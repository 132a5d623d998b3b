// The head of a page: its title and its actions.
import type { ComponentChildren } from 'preact'

export function Head ({ title, count, children }: { readonly title: string, readonly count?: number | undefined, readonly children?: ComponentChildren }) {
  return <header class='head'><h1>{title}{count !== undefined && <span class='count'>{count}</span>}</h1><div class='actions'>{children}</div></header>
}
