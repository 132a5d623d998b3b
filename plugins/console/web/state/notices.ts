// Short messages about what was done or failed.
import { signal } from '@preact/signals'
import { messageOf } from '../api/call.ts'

export interface Notice { readonly id: number, readonly text: string, readonly isError: boolean }

export const notices = signal<readonly Notice[]>([])

const SHOWN_MS = 8000
let last = 0

export function say (text: string): void { add(text, false) }
export function complain (error: unknown): void { add(messageOf(error), true) }
export function dismiss (id: number): void { notices.value = notices.peek().filter((notice) => notice.id !== id) }

function add (text: string, isError: boolean): void {
  const id = ++last
  notices.value = [...notices.peek().slice(-4), { id, text, isError }]
  // An error stays until the user closes it.
  if (!isError) setTimeout(() => { dismiss(id) }, SHOWN_MS)
}
