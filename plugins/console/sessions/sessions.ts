// The sessions of users who are logged in. They exist in this process only: nothing of them is stored, and they end with it.
import { durableIdOf } from '../../../core/auth/durable-id.ts'
import type { ApiKeyPrincipal, ApiKeys } from '../../../core/contracts/services.ts'
import { LONGEST_TIMER_MS } from '../../../core/jobs/longest-timer.ts'
import { keptForm, makeSecret } from './secret-text.ts'

/** For all keys together; a session costs a few hundred bytes. */
const MAX_SESSIONS = 10_000

export interface SessionsOptions {
  readonly apiKeys: Pick<ApiKeys, 'current' | 'whenEnded'>
  readonly lifetimeMs: number
  /** of one key */
  readonly maxPerKey: number
  /** ms since the epoch */
  readonly clock?: () => number
  /** ms of a clock that setting the time does not affect */
  readonly elapsed?: () => number
}

export interface Session {
  /** hash of its secret, under which it is kept */
  readonly id: string
  readonly keyId: string
  /** ms since the epoch */
  readonly expiresAt: number
  /** by the steady clock, `elapsed` */
  readonly endsAt: number
  /** functions that close what is open with the session; called when it ends */
  readonly open: Set<() => void>
  readonly release: () => void
}

export class Sessions {
  readonly #options: Required<SessionsOptions>
  /** oldest first */
  readonly #sessions = new Map<string, Session>()

  constructor (options: SessionsOptions) {
    this.#options = { clock: Date.now, elapsed: () => performance.now(), ...options }
  }

  get size (): number { return this.#sessions.size }

  /** Begins a session, always with a new secret, which is returned and not kept. It ends no later than its key. */
  begin (principal: ApiKeyPrincipal): { readonly secret: string, readonly session: Session } {
    const { apiKeys, lifetimeMs, maxPerKey, clock, elapsed } = this.#options
    this.#endExpired()
    const keyId = durableIdOf(principal)
    const own = [...this.#sessions.values()].filter((session) => session.keyId === keyId)
    for (const oldest of own.slice(0, Math.max(0, own.length + 1 - maxPerKey))) this.end(oldest.id)
    const eldest = this.#sessions.keys().next().value
    if (this.#sessions.size >= MAX_SESSIONS && eldest !== undefined) this.end(eldest)
    const secret = makeSecret()
    const id = keptForm(secret) ?? ''
    const now = clock()
    const lasts = Math.min(lifetimeMs, (principal.expiresAt ?? Infinity) - now)
    const session: Session = {
      id, keyId, expiresAt: now + lasts, endsAt: elapsed() + lasts, open: new Set(), release: apiKeys.whenEnded(principal, () => { this.end(id) })
    }
    this.#sessions.set(id, session)
    return { secret, session }
  }

  /** The session of a secret that has not ended. */
  find (secret: string): Session | undefined {
    const id = keptForm(secret)
    return id === undefined ? undefined : this.byId(id)
  }

  byId (id: string): Session | undefined {
    const session = this.#sessions.get(id)
    if (session === undefined || session.endsAt > this.#options.elapsed()) return session
    this.end(id)
    return undefined
  }

  /** The session's key in its current state; undefined when the session has ended, also while the key was looked up. When the key has ended, so does the session. */
  async principalOf (session: Session): Promise<ApiKeyPrincipal | undefined> {
    const principal = await this.#options.apiKeys.current(session.keyId)
    if (principal === undefined) this.end(session.id)
    return this.byId(session.id) === session ? principal : undefined
  }

  /** Calls `close` when the session ends, at once if it has; returns a function that cancels this. */
  whenEnded (session: Session, close: () => void): () => void {
    if (this.byId(session.id) !== session) {
      close()
      return () => {}
    }
    let timer: NodeJS.Timeout | undefined
    const look = (): void => {
      const left = session.endsAt - this.#options.elapsed()
      // A session may last longer than a timer can: then it is looked at again.
      timer = setTimeout(() => { if (this.byId(session.id) !== undefined) look() }, Math.min(left + 1, LONGEST_TIMER_MS)).unref()
    }
    look()
    session.open.add(close)
    return () => {
      clearTimeout(timer)
      session.open.delete(close)
    }
  }

  /** Ends a session with what is open with it. */
  end (id: string): void {
    const session = this.#sessions.get(id)
    if (session === undefined) return
    this.#sessions.delete(id)
    session.release()
    for (const close of [...session.open]) close()
  }

  endAll (): void {
    for (const id of [...this.#sessions.keys()]) this.end(id)
  }

  #endExpired (): void {
    for (const id of [...this.#sessions.keys()]) this.byId(id)
  }
}
