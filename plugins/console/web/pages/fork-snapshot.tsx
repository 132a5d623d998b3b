// The form that makes an instance of a snapshot.
import { path } from '../api/call.ts'
import type { Instance, Snapshot } from '../api/types.ts'
import { CreateDialog } from '../forms/create-dialog.tsx'
import { say } from '../state/notices.ts'
import { go } from '../state/route.ts'

export function ForkSnapshot ({ snapshot: { id, source_instance_name: source }, onClose }: { readonly snapshot: Snapshot, readonly onClose: () => void }) {
  return (
    <CreateDialog
      title='Fork' spec={{
        documented: '/snapshots/{snapshotId}/fork', url: path`/snapshots/${id}/fork`, first: ['name', 'target_state'], initial: { name: `${source}-fork`.slice(0, 63) },
        onMade: (made) => { const fork = made as Instance; say(`${fork.name}: made`); go(['instances', fork.id]) }
      }} onClose={onClose} onMade={onClose}
    />
  )
}
