// One instance: its state, its actions, and a tab for each aspect.
import { useState } from 'preact/hooks'
import { path } from '../../api/call.ts'
import type { Instance } from '../../api/types.ts'
import { Button } from '../../parts/button.tsx'
import { Choice } from '../../parts/choice.tsx'
import { Problem } from '../../parts/problem.tsx'
import { State } from '../../parts/state.tsx'
import { Wait } from '../../parts/wait.tsx'
import { useLoaded } from '../../state/list.ts'
import { go, href } from '../../state/route.ts'
import { ForkInstance, unforkable } from '../fork-instance.tsx'
import { ACTIONS, askToDelete, unfit } from '../instance-actions.ts'
import { AsCode } from './as-code.tsx'
import { InstanceEgress } from './egress.tsx'
import { InstanceEvents } from './events.tsx'
import { Files } from './files.tsx'
import { Logs } from './logs.tsx'
import { Overview } from './overview.tsx'
import { InstanceSnapshots } from './snapshots.tsx'
import { Terminals } from './terminals.tsx'

const TABS = { overview: ['Overview', Overview], logs: ['Logs', Logs], terminal: ['Terminal', Terminals], files: ['Files', Files], snapshots: ['Snapshots', InstanceSnapshots], egress: ['Egress', InstanceEgress], events: ['Events', InstanceEvents], code: ['JSON', AsCode] } as const

export function InstanceDetail ({ id, tab }: { readonly id: string, readonly tab: string }) {
  const { data, error, reload } = useLoaded<Instance>(path`/instances/${id}`, ['instance'], id)
  const [isForking, setForking] = useState(false)
  const instance = data.value
  if (instance === undefined) return error.value === '' ? <Wait what='the instance' /> : <><h1>Instance</h1><Problem text={error.value} onRetry={reload} /><p><a href={href(['instances'])}>All instances</a></p></>
  const reason = instance.state_error ?? instance.restore_error
  const [, View] = TABS[tab as keyof typeof TABS] ?? TABS.overview
  return (
    <>
      <header class='head'><h1><a class='up' href={href(['instances'])}>Instances</a><span aria-hidden='true'> / </span>{instance.name} <State value={instance.state} reason={reason} /></h1>
        <div class='actions'>
          {ACTIONS.filter(({ verb, states }) => states.includes(instance.state) || verb === 'Standby').map((action) => <Button key={action.verb} scope='instance:write' unless={unfit(action, [instance])} onPress={async () => { await action.run(instance); reload() }}>{action.verb}</Button>)}
          <Button scope='instance:write' unless={unforkable(instance)} onPress={() => { setForking(true) }}>Fork</Button>
          <Button kind='danger' scope='instance:write' onPress={async () => { await askToDelete([instance], () => { go(['instances']) }) }}>Delete</Button>
        </div>
      </header>
      {error.value !== '' && <Problem text={error.value} onRetry={reload} />}
      {typeof reason === 'string' && <Problem text={reason} />}
      <nav class='tabs' aria-label={`Sides of ${instance.name}`}>{Object.entries(TABS).map(([key, [title]]) => <Choice key={key} href={href(['instances', id, key])} isChosen={key === tab}>{title}</Choice>)}</nav>
      <View instance={instance} />
      {isForking && <ForkInstance instance={instance} onClose={() => { setForking(false) }} />}
    </>
  )
}
