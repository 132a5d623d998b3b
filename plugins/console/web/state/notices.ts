// Short messages about what was done or failed.
import { signal } from '@preact/signals'
import { messageOf } from '../api/call.ts'

export interface Notice { readonly id: number, readonly text: string, readonly isError: boolean }

export const notices = signal<readonly Notice[]>([])

const SHOWN_MS = 8000
let last = 0

export function say (text: string): void { add({ text, isError: false }) }
export function complain (error: unknown): void { add({ text: messageOf(error), isError: true }) }
export function dismiss (id: number): void { notices.value = notices.peek().filter((notice) => notice.id !== id) }

function add ({ text, isError }: Omit<Notice, 'id'>): void {
  const id = ++last
  notices.value = [...notices.peek().slice(-4), { id, text, isError }]
  // An error stays until the user closes it.
  if (!isError) setTimeout(() => { dismiss(id) }, SHOWN_MS)
}
