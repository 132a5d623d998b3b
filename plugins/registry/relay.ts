// Serves an admitted request: passes it to the store, and lets other plugins record a push before its client gets the answer.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { EventBus, Logger } from '../../core/contracts/services.ts'
import type { Gateway } from './gateway.ts'
import type { RegistryRequest } from './requests.ts'
import { refuseMidway } from './refuse-midway.ts'
import type { Uploads } from './uploads.ts'

export interface Relay {
  /** @param owner whose limits on uploads and connections this counts for: a key's id, or a grant's */
  serve (request: IncomingMessage, response: ServerResponse, asked: RelayedRequest, owner: string): void
}

export interface RelayedRequest {
  readonly asked: RegistryRequest | undefined
  /** the name by which the client knows this registry */
  readonly host: string
  /** whether pushes are not announced */
  readonly quiet?: boolean
}

export interface RelayOptions {
  readonly gateway: Gateway
  readonly events: EventBus
  readonly uploads: Uploads
  readonly log: Logger
}

/** How long the answer to a push may be held back while others record it. */
const NOTE_TIMEOUT_MS = 10_000

export function createRelay (options: RelayOptions): Relay {
  const { gateway, uploads, log } = options

  async function begin (request: IncomingMessage, response: ServerResponse, asked: RegistryRequest, owner: string): Promise<void> {
    const over = uploads.begin(response, asked, owner)
    try {
      const shortage = await uploads.shortage()
      if (shortage === undefined) return gateway.begin(request, response, owner, over)
      over()
      refuseMidway(request, response, { status: 507, code: 'INSUFFICIENT_STORAGE', message: shortage })
    } catch (error) {
      over()
      log.warn({ err: error }, 'an upload could not be begun')
      response.destroy()
    }
  }

  return {
    serve (request, response, { asked, host, quiet }, owner) {
      const refusal = asked === undefined ? undefined : uploads.refusal(asked, owner)
      if (refusal !== undefined) return refuseMidway(request, response, { status: 429, code: 'TOOMANYREQUESTS', message: refusal })
      if (asked?.startsUpload === true) {
        void begin(request, response, asked, owner)
        return
      }
      const push = quiet === true ? undefined : asked?.push
      gateway.serve(request, response, owner, push === undefined ? undefined : (digest) => announce(options, { ...push, digest, host }))
      if (asked !== undefined) uploads.attend(request, response, asked, owner)
    }
  }
}

interface Pushed { readonly repository: string, readonly reference: string, readonly digest: string, readonly host: string }

// The push has succeeded, so a record that fails or takes too long must not fail it.
async function announce ({ events, log }: RelayOptions, pushed: Pushed): Promise<void> {
  const notes: Array<Promise<unknown>> = []
  events.emit('registry.pushed', { ...pushed, waitUntil: (work) => { notes.push(work) } })
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => { timer = setTimeout(resolve, NOTE_TIMEOUT_MS) })
  const results = await Promise.race([Promise.allSettled(notes), late])
  clearTimeout(timer)
  for (const result of results ?? []) {
    if (result.status === 'rejected') log.error({ err: result.reason, repository: pushed.repository }, 'a push could not be noted')
  }
}
