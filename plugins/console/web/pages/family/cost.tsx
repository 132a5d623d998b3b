// What one instance costs, measured when somebody asks for it.
import { path } from '../../api/call.ts'
import type { Footprint, Instance } from '../../api/types.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { bytes } from '../../parts/format.ts'
import { Problem } from '../../parts/problem.tsx'
import { Wait } from '../../parts/wait.tsx'
import { useLoaded } from '../../state/list.ts'

export function Cost ({ instance: { id, name, size, overlay_size: disk }, onClose }: { readonly instance: Instance, readonly onClose: () => void }) {
  const loaded = useLoaded<Footprint>(path`/instances/${id}/footprint`, ['instance'], id)
  const cost = loaded.data.value
  const { reload } = loaded
  return (
    <Dialog title={`What ${name} costs`} onClose={onClose}>
      {loaded.error.value !== '' && <Problem text={loaded.error.value} onRetry={reload} />}
      {cost === undefined ? loaded.error.value === '' && <Wait what='memory and disk' /> : <>
        <h2>Memory</h2>
        {cost.memory === null ? <p>None is told: {cost.memory_reason}.</p>
          : <dl class='facts'>
            <dt>Its part</dt><dd>{bytes(cost.memory.proportional_bytes)} (PSS), of up to {size}</dd>
            <dt>Its own</dt><dd>{bytes(cost.memory.own_bytes)}</dd>
            <dt>Shared</dt><dd>{bytes(cost.memory.shared_bytes)} with other processes, such as the VMM's program</dd>
            </dl>}
        <h2>Disk</h2>
        <dl class='facts'>
          <dt>All files</dt><dd>{bytes(cost.disk.total_bytes)}: writable disk {bytes(cost.disk.writable_disk_bytes)} of up to {disk}, memory {bytes(cost.disk.memory_bytes)}, logs and the rest {bytes(cost.disk.other_bytes)}</dd>
          <dt>Its own</dt><dd>{cost.disk.own_bytes === null ? 'not told by the file system' : bytes(cost.disk.own_bytes)}</dd>
          <dt>Shared</dt><dd>{cost.disk.shared_bytes === null ? 'not told by the file system' : `${bytes(cost.disk.shared_bytes)} with other files`}; and its image, which all instances of the image read</dd>
        </dl>
                                                                                          </>}
      <footer><button type='button' class='button plain' onClick={reload}>Measure again</button></footer>
    </Dialog>
  )
}
