// A link to one of several pages or sides. The chosen one is in sight, also where the row of them is wider than the screen.
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'

interface ChoiceProps {
  readonly href: string
  readonly isChosen: boolean
  readonly children: ComponentChildren
  readonly title?: string | undefined
  readonly 'aria-disabled'?: true | undefined
}

export function Choice ({ isChosen, children, ...link }: ChoiceProps) {
  const own = useRef<HTMLAnchorElement>(null)
  useLayoutEffect(() => { if (isChosen) own.current?.scrollIntoView({ block: 'nearest', inline: 'nearest' }) }, [isChosen])
  return <a ref={own} aria-current={isChosen ? 'page' : undefined} {...link}>{children}</a>
}
