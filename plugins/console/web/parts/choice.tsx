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
  useLayoutEffect(() => {
    if (!isChosen) return
    const show = (): void => { if (own.current !== null) scrollRow(own.current) }
    show()
    window.addEventListener('resize', show)
    return () => { window.removeEventListener('resize', show) }
  }, [isChosen])
  return <a ref={own} aria-current={isChosen ? 'page' : undefined} {...link}>{children}</a>
}

/** Along the row only: `scrollIntoView` would move the page as well, under a reader who has scrolled down. */
function scrollRow (link: HTMLAnchorElement): void {
  const row = link.closest('ul, nav')
  if (row === null) return
  const [place, frame] = [link.getBoundingClientRect(), row.getBoundingClientRect()]
  if (place.left < frame.left) row.scrollLeft -= frame.left - place.left
  else if (place.right > frame.right) row.scrollLeft += place.right - frame.right
}
