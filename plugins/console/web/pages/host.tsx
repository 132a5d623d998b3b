// The host: a tab for each aspect. One that this key or this server does not have says why.
import type { ComponentChildren } from 'preact'
import { Choice } from '../parts/choice.tsx'
import { Empty } from '../parts/empty.tsx'
import { Wait } from '../parts/wait.tsx'
import { useLoaded, type Loaded } from '../state/list.ts'
import { href, route } from '../state/route.ts'
import { allows } from '../state/session.ts'
import { Head } from './head.tsx'
import { Capacity } from './host/capacity.tsx'
import { HostChecks } from './host/checks.tsx'
import { HostLog } from './host/log.tsx'
import { HostPlugins, type PluginReport } from './host/plugins.tsx'
import { HostProcesses } from './host/processes.tsx'

type Plugins = Loaded<readonly PluginReport[]>
interface Tab { readonly title: string, readonly scope: string, readonly plugin?: string, readonly View: (props: { readonly plugins: Plugins | undefined }) => ComponentChildren }

const TABS: Readonly<Record<string, Tab>> = {
  capacity: { title: 'Capacity', scope: 'resource:read', View: Capacity },
  checks: { title: 'Checks', scope: 'host:read', plugin: 'host', View: HostChecks },
  processes: { title: 'Processes', scope: 'host:read', plugin: 'host', View: HostProcesses },
  log: { title: 'Log', scope: 'host-log:read', plugin: 'host', View: HostLog },
  plugins: { title: 'Plugins', scope: 'resource:read', View: HostPlugins }
}

export function Host () {
  return allows('resource:read') ? <WithPlugins /> : <Sides plugins={undefined} />
}

/** Which plugins run decides which tabs there are. */
function WithPlugins () {
  return <Sides plugins={useLoaded<readonly PluginReport[]>('/plugins', [])} />
}

function Sides ({ plugins }: { readonly plugins: Plugins | undefined }) {
  const [, chosen = 'capacity'] = route.value.parts
  const lacks = ({ scope, plugin }: Tab): { readonly title: string, readonly reason: string } | undefined => {
    if (!allows(scope)) return { title: 'This key may not look here.', reason: `It lacks the scope ${scope}.` }
    const known = plugins?.data.value
    if (plugin === undefined || known === undefined) return undefined
    const { state, reason } = known.find(({ id }) => id === plugin) ?? { state: 'absent', reason: 'this server has none' }
    return state === 'started' ? undefined : { title: `The plugin ${plugin} does not run.`, reason: `It is ${state}: ${reason ?? 'no reason is given'}.` }
  }
  const tab = TABS[chosen]
  const lack = tab === undefined ? undefined : lacks(tab)
  const isAsking = tab?.plugin !== undefined && plugins?.data.value === undefined && plugins?.error.value === ''
  return (
    <>
      <Head title='Host' />
      <nav class='tabs' aria-label='Sides of the host'>{Object.entries(TABS).map(([key, each]) => {
        const { title, reason } = lacks(each) ?? {}
        return <Choice key={key} href={href(['host', key])} isChosen={key === chosen} aria-disabled={reason === undefined ? undefined : true} title={reason === undefined ? undefined : `${title ?? ''} ${reason}`}>{each.title}</Choice>
      })}
      </nav>
      {tab === undefined ? <Empty title='There is no such side of the host.' /> : lack !== undefined ? <Empty title={lack.title}>{lack.reason}</Empty> : isAsking ? <Wait what='which plugins there are' /> : <tab.View plugins={plugins} />}
    </>
  )
}
