// A server with webhooks and things that change.
import type { Test } from 'tap'
import { plugin as webhooks } from '../../../plugins/webhooks/index.ts'
import { ADMIN_KEY } from '../../core/bare-app.ts'
import { eventually } from '../../helpers/eventually.ts'
import { startWithThings, type ThingsApp, type ThingsOptions } from '../events/things.ts'

export interface Webhook {
  readonly id: string
  readonly secret: string
  readonly status: string
  readonly enabled: boolean
  readonly key_id: string
  readonly failed_attempts: number
  readonly last_error: { readonly message: string } | null
  readonly last_delivery: { readonly event_id: string } | null
}

export interface WebhooksApp extends ThingsApp {
  call (method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown, key?: string): Promise<{ readonly status: number, readonly body: Webhook & { readonly code?: string, readonly message?: string } }>
  make (body: unknown, key?: string): Promise<Webhook>
  /** The webhook once it is so. */
  until (id: string, status: string): Promise<Webhook>
  /** Resolves once it is known that this event was delivered: before that, an end of the server has it sent again. */
  known (id: string, eventId: string | undefined, key?: string): Promise<unknown>
}

/** Receivers are on loopback, and failures are repeated soon. */
export async function startWithWebhooks (t: Test, config: Record<string, unknown> = {}, options: ThingsOptions = {}): Promise<WebhooksApp> {
  const run = await startWithThings(t, {
    ...options,
    more: [webhooks],
    moreConfig: { webhooks: { config: { allowPrivate: ['127.0.0.1'], retryFrom: '10ms', retryAtMost: '50ms', ...config } } }
  })
  const call: WebhooksApp['call'] = async (method, path, body, key = ADMIN_KEY) => {
    const answer = await fetch(run.app.address() + path, {
      method, headers: { authorization: `Bearer ${key}`, ...body === undefined ? {} : { 'content-type': 'application/json' } }, ...body === undefined ? {} : { body: JSON.stringify(body) }
    })
    const text = await answer.text()
    return { status: answer.status, body: text === '' ? {} : JSON.parse(text) }
  }
  return {
    ...run,
    call,
    async make (body, key) {
      const answer = await call('POST', '/webhooks', body, key)
      if (answer.status !== 201) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`)
      return answer.body
    },
    until: async (id, status) => await eventually(`the webhook is ${status}`, async () => {
      const { body } = await call('GET', `/webhooks/${id}`)
      return body.status === status && body
    }),
    known: async (id, eventId, key) => await eventually('the delivery is known', async () => (await call('GET', `/webhooks/${id}`, undefined, key)).body.last_delivery?.event_id === eventId)
  }
}
