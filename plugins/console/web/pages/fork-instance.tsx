// The form that makes a fork of an instance.
import { path } from '../api/call.ts'
import type { Instance } from '../api/types.ts'
import { CreateDialog } from '../forms/create-dialog.tsx'
import { say } from '../state/notices.ts'
import { go } from '../state/route.ts'

/** Why the instance cannot be forked now; `false`: it can. */
export function unforkable ({ state }: Instance): string | false {
  return !['Running', 'Standby', 'Stopped'].includes(state) && 'Fork needs Running, Standby or Stopped.'
}

export function ForkInstance ({ instance: { id, name, state }, onClose }: { readonly instance: Instance, readonly onClose: () => void }) {
  return (
    <CreateDialog
      title='Fork' spec={{
        documented: '/instances/{id}/fork', url: path`/instances/${id}/fork`, first: ['name', 'from_running', 'target_state'], initial: { name: `${name}-fork`.slice(0, 63), ...state === 'Running' ? { from_running: 'true' } : {} },
        onMade: (made) => { const fork = made as Instance; say(`${fork.name}: forked`); go(['instances', fork.id]) }
      }} onClose={onClose} onMade={onClose}
    />
  )
}
