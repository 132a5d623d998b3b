// Pushes as JSON.
import type { PushView } from './schemas.ts'
import type { ShownPush } from './service.ts'

export function pushView (push: ShownPush): PushView {
  return {
    id: push.id,
    image: push.image,
    target: push.target,
    digest: push.digest,
    status: push.status,
    queue_position: push.queuePosition ?? null,
    ...push.layers === null ? {} : { layers: push.layers },
    ...push.bytes === null ? {} : { bytes: push.bytes },
    error: push.error,
    created_at: new Date(push.createdAt).toISOString(),
    completed_at: push.completedAt === null ? null : new Date(push.completedAt).toISOString()
  }
}
