// Serves a request that has been let in: hands it to the store, and sees to it that others note a push before its client hears of it.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { EventBus, Logger } from '../../core/contracts/services.ts'
import type { Gateway } from './gateway.ts'
import type { RegistryRequest } from './requests.ts'

export interface Relay {
  /** @param host by which the client knows this registry */
  serve (request: IncomingMessage, response: ServerResponse, push: RegistryRequest['push'], host: string): void
}

export interface RelayOptions {
  readonly gateway: Gateway
  readonly events: EventBus
  readonly log: Logger
}

/** How long a push may be held back while others note it. */
const NOTE_TIMEOUT_MS = 10_000

export function createRelay (options: RelayOptions): Relay {
  return {
    serve (request, response, push, host) {
      options.gateway.serve(request, response, push === undefined ? undefined : (digest) => announce(options, { ...push, digest, host }))
    }
  }
}

interface Pushed { readonly repository: string, readonly reference: string, readonly digest: string, readonly host: string }

// The push has happened, so a note that fails or takes too long must not fail it.
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
