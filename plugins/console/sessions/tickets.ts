// Tickets for WebSockets: a page cannot give a WebSocket a header, and the cookie alone does not prove that our page asks. Each is valid for one connection, for a short time.
import { keptForm, makeSecret } from './secret-text.ts'

const LIFETIME_MS = 30_000
/** per session; one more invalidates the oldest */
const MAX_TICKETS = 32

interface Ticket { readonly sessionId: string, readonly endsAt: number }

export class Tickets {
  readonly #tickets = new Map<string, Ticket>()
  readonly #elapsed: () => number

  constructor (elapsed: () => number = () => performance.now()) {
    this.#elapsed = elapsed
  }

  issue (sessionId: string): string {
    const now = this.#elapsed()
    for (const [id, { endsAt }] of this.#tickets) if (endsAt <= now) this.#tickets.delete(id)
    const own = [...this.#tickets].filter(([, ticket]) => ticket.sessionId === sessionId)
    for (const [id] of own.slice(0, Math.max(0, own.length + 1 - MAX_TICKETS))) this.#tickets.delete(id)
    const secret = makeSecret()
    this.#tickets.set(keptForm(secret) ?? '', { sessionId, endsAt: now + LIFETIME_MS })
    return secret
  }

  /** Whether it is a valid ticket of this session. Afterwards it is invalid, whatever the answer. */
  redeem (secret: string, sessionId: string): boolean {
    const id = keptForm(secret)
    const ticket = id === undefined ? undefined : this.#tickets.get(id)
    if (id === undefined || ticket === undefined) return false
    this.#tickets.delete(id)
    return ticket.sessionId === sessionId && ticket.endsAt > this.#elapsed()
  }
}
