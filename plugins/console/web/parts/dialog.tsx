// A question that has to be answered first; the browser's own dialog keeps the focus inside.
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'

export function Dialog ({ title, children, onClose, wide = false }: { readonly title: string, readonly children: ComponentChildren, readonly onClose: () => void, readonly wide?: boolean }) {
  const element = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => { element.current?.showModal() }, [])
  return (
    <dialog ref={element} class={wide ? 'wide' : ''} aria-labelledby={id} onCancel={(event) => { event.preventDefault(); onClose() }}>
      <header><h2 id={id}>{title}</h2><button type='button' class='icon' aria-label='Close' onClick={onClose}>×</button></header>
      <div class='dialog-body'>{children}</div>
    </dialog>
  )
}
