// A button that says why it is disabled: the keyboard still reaches it, so that the reason can be read.
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { allows } from '../state/session.ts'
import { complain } from '../state/notices.ts'

export interface ButtonProps {
  readonly children: ComponentChildren
  /** the scope that the key needs */
  readonly scope?: string
  /** why it cannot be used now; absent: it can */
  readonly unless?: string | false | undefined
  readonly kind?: 'primary' | 'danger' | 'plain'
  readonly label?: string
  readonly onPress: () => void | Promise<void>
}

export function Button ({ children, scope, unless, kind = 'plain', label, onPress }: ButtonProps) {
  const [isBusy, setBusy] = useState(false)
  const reason = scope !== undefined && !allows(scope) ? `This key lacks the scope ${scope}.` : unless === false ? undefined : unless
  const press = async (): Promise<void> => {
    if (reason !== undefined || isBusy) return
    setBusy(true)
    try {
      await onPress()
    } catch (error) {
      complain(error)
    }
    setBusy(false)
  }
  return <button type='button' class={`button ${kind}`} aria-disabled={reason !== undefined || isBusy} aria-busy={isBusy} title={reason} aria-label={reason === undefined ? label : `${label ?? (typeof children === 'string' ? children : '')}: ${reason}`} onClick={() => { void press() }}>{children}</button>
}
