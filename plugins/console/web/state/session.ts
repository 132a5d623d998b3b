// The current session. The page never keeps the key itself, only a cookie that scripts cannot read.
import { signal } from '@preact/signals'
import { call, whenRefused } from '../api/call.ts'

export interface SessionKey { readonly id: string, readonly name: string, readonly scopes: readonly string[] }

interface SessionView { readonly key: SessionKey | null, readonly expires_at?: string }

/** `undefined` until the server has answered; `null`: not logged in */
export const sessionKey = signal<SessionKey | null | undefined>(undefined)
/** why the user has to log in again */
export const farewell = signal('')

export async function askSession (): Promise<SessionKey | null> {
  const { key } = await call<SessionView>('GET', '/console/session')
  if (key === null && sessionKey.peek() != null) farewell.value = 'The session has ended. Log in again to go on where you were.'
  sessionKey.value = key
  return key
}

export async function logIn (key: string): Promise<void> {
  const view = await call<SessionView>('POST', '/console/session', { key })
  farewell.value = ''
  sessionKey.value = view.key
}

export async function logOut (): Promise<void> {
  await call('DELETE', '/console/session')
  farewell.value = 'You are logged out.'
  sessionKey.value = null
}

whenRefused(() => {
  if (sessionKey.peek() == null) return
  farewell.value = 'The session has ended: it expired, its key was revoked, or the server was started anew. Log in again to go on where you were.'
  sessionKey.value = null
})

export function allows (scope: string): boolean {
  const scopes = sessionKey.value?.scopes ?? []
  return scopes.includes('*') || scopes.includes(scope)
}
