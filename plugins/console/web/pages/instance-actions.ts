// The actions on instances, and the states in which each is possible.
import { call, path } from '../api/call.ts'
import type { Instance, Snapshot } from '../api/types.ts'
import { ask } from '../parts/confirm.tsx'
import { say } from '../state/notices.ts'

export interface InstanceAction {
  readonly verb: string
  readonly states: readonly string[]
  readonly run: (instance: Instance) => Promise<void>
}

const post = (step: string, done: string, body?: unknown) => async ({ id, name }: Instance): Promise<void> => {
  await call('POST', `${path`/instances/${id}`}/${step}`, body)
  say(`${name}: ${done}`)
}

export const ACTIONS: readonly InstanceAction[] = [
  { verb: 'Start', states: ['Stopped'], run: post('start', 'started') },
  { verb: 'Restore', states: ['Standby'], run: post('restore', 'restored') },
  { verb: 'Standby', states: ['Running'], run: post('standby', 'in standby') },
  { verb: 'Stop', states: ['Running', 'Initializing'], run: post('stop', 'stopped') }
]

/** Why an action is impossible for these instances; `false`: it is possible. */
export function unfit ({ verb, states }: InstanceAction, instances: readonly Instance[]): string | false {
  if (instances.length === 0) return 'Select instances first.'
  const other = instances.find(({ state }) => !states.includes(state))
  return other === undefined ? false : `${verb} needs ${states.join(' or ')}; ${other.name} is ${other.state}.`
}

export async function askToDelete (instances: readonly Instance[], done: () => void): Promise<void> {
  const snapshots = await call<Snapshot[]>('GET', '/snapshots').catch(() => [])
  const kept = snapshots.filter(({ source_instance_id: source }) => instances.some(({ id }) => id === source)).length
  ask({
    title: instances.length === 1 ? `Delete ${instances[0]?.name ?? ''}?` : `Delete ${instances.length} instances?`,
    text: 'This cannot be taken back. What goes:',
    goes: [
      ...instances.slice(0, 10).map(({ name, state, overlay_size: disk, has_snapshot: asleep }) => `${name} (${state}), its disk of up to ${disk}, its logs${asleep ? ', and the memory image of its standby' : ''}`),
      ...instances.length > 10 ? [`and ${instances.length - 10} more`] : [],
      ...instances.some(({ volumes }) => volumes.length > 0) ? ['Volumes stay, and are attached to nothing any more'] : [],
      ...kept > 0 ? [`${kept} snapshot${kept === 1 ? '' : 's'} of it stay${kept === 1 ? 's' : ''}`] : []
    ],
    verb: 'Delete',
    act: async () => {
      for (const { id, name } of instances) {
        await call('DELETE', path`/instances/${id}`)
        say(`${name}: deleted`)
      }
      done()
    }
  })
}
