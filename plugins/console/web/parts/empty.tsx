// Shown instead of an empty list: what to do first.
import type { ComponentChildren } from 'preact'

export function Empty ({ title, children }: { readonly title: string, readonly children?: ComponentChildren }) {
  return <div class='empty'><p class='empty-title'>{title}</p>{children !== undefined && <div>{children}</div>}</div>
}
