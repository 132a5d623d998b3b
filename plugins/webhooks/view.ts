// Webhooks as JSON, without their secrets.
import { shownKeyId } from '../../core/auth/durable-id.ts'
import type { WebhookRecord } from './record.ts'
import type { WebhookView } from './schemas.ts'

export function webhookView ({ id, url, filter, isEnabled, status, keyId, createdAt, deliveredId, deliveredAt, attempts, error, failedAt }: WebhookRecord): WebhookView {
  const { resources, ids, tags } = filter
  return {
    id,
    url,
    filter: { ...resources === undefined ? {} : { resources: [...resources] }, ...ids === undefined ? {} : { ids: [...ids] }, ...tags === undefined ? {} : { tags: { ...tags } } },
    enabled: isEnabled,
    status,
    key_id: shownKeyId(keyId),
    created_at: time(createdAt),
    last_delivery: deliveredId === null || deliveredAt === null ? null : { event_id: String(deliveredId), delivered_at: time(deliveredAt) },
    failed_attempts: attempts,
    last_error: error === null || failedAt === null ? null : { message: error, failed_at: time(failedAt) }
  }
}

function time (ms: number): string {
  return new Date(ms).toISOString()
}
