// Changes on the server, as they happen. Lists listen here and read what changed; after a lost connection they read everything.
import { signal } from '@preact/signals'
import type { ApiEvent } from '../api/types.ts'
import { whileSeen } from './seen.ts'
import { askSession, sessionKey } from './session.ts'

export type Connection = { readonly state: 'connecting' | 'live' } | { readonly state: 'lost', readonly since: number }

export const connection = signal<Connection>({ state: 'connecting' })
/** the last ones, newest first */
export const recentEvents = signal<readonly ApiEvent[]>([])

const KEPT = 500
/** Events within this time are reported together. */
const TOGETHER_MS = 50
const RETRY_MS = 2000

type Listener = (event: ApiEvent | 'everything') => void
const listeners = new Set<Listener>()
let source: EventSource | undefined
let wasLive = false
/** id of the last event, behind which a stream that is opened again goes on */
let position = ''

/** Calls the listener with each event, and with `everything` when some may have been missed. */
export function onChange (listener: Listener): () => void {
  listeners.add(listener)
  return () => { listeners.delete(listener) }
}

/** Follows the changes while the page is seen; returns what ends that. */
export function followLive (): () => void {
  const leave = whileSeen(() => {
    openLive()
    return () => {
      source?.close()
      source = undefined
      // Until the page is seen again more may change than the server remembers.
      wasLive = true
    }
  })
  return () => {
    leave()
    wasLive = false
    position = ''
    connection.value = { state: 'connecting' }
  }
}

function openLive (): void {
  source?.close()
  const opened = new EventSource(position === '' ? '/events' : `/events?after=${encodeURIComponent(position)}`)
  source = opened
  opened.addEventListener('message', ({ data, lastEventId }) => {
    position = lastEventId
    take(JSON.parse(String(data)) as ApiEvent)
  })
  opened.addEventListener('error', () => {
    if (connection.peek().state !== 'lost') connection.value = { state: 'lost', since: Date.now() }
    // The browser reconnects by itself unless it was refused: the position is no longer known, or the session has ended.
    if (opened.readyState === EventSource.CLOSED) setTimeout(() => { void again(opened) }, RETRY_MS)
  })
}

async function again (closed: EventSource): Promise<void> {
  if (source !== closed) return
  try {
    if (await askSession() === null) return
  } catch {
    setTimeout(() => { void again(closed) }, RETRY_MS)
    return
  }
  if (source !== closed || sessionKey.peek() == null) return
  wasLive = true
  position = ''
  openLive()
}

function take (event: ApiEvent): void {
  if (event.type === 'ready') {
    connection.value = { state: 'live' }
    if (wasLive) tell('everything')
    wasLive = true
    return
  }
  if (event.type === 'bookmark') return
  if (event.type === 'expired') {
    tell('everything')
    return
  }
  if (!event.type.endsWith('.progress')) remember(event)
  tell(event)
}

let fresh: ApiEvent[] = []

function remember (event: ApiEvent): void {
  fresh.push(event)
  if (fresh.length > 1) return
  setTimeout(() => {
    recentEvents.value = [...fresh.reverse(), ...recentEvents.peek()].slice(0, KEPT)
    fresh = []
  }, TOGETHER_MS)
}

function tell (event: ApiEvent | 'everything'): void {
  for (const listener of [...listeners]) listener(event)
}
