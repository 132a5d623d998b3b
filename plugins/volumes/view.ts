// Volumes as JSON.
import type { VolumeWithAttachments } from './record.ts'
import type { VolumeView } from './schemas.ts'

export function volumeView ({ id, name, sizeGb, createdAt, tags, attachments }: VolumeWithAttachments): VolumeView {
  return {
    id,
    name,
    size_gb: sizeGb,
    created_at: new Date(createdAt).toISOString(),
    ...(Object.keys(tags).length === 0 ? {} : { tags: { ...tags } }),
    attachments: attachments.map(({ instanceId, mountPath, readonly }) => ({ instance_id: instanceId, mount_path: mountPath, readonly }))
  }
}
