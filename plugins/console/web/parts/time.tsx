// How long ago something was, with the exact time on hover.
import { now } from '../state/clock.ts'
import { ago, exact } from './format.ts'

export function Time ({ at }: { readonly at: string | null | undefined }) {
  if (at === null || at === undefined) return <span class='quiet'>–</span>
  const ms = Date.parse(at)
  return <time dateTime={at} title={exact(ms)}>{ago(ms, now.value)}</time>
}
