// What the host has, who takes what of it, and what runs VMs there.
import { Absent } from '../../parts/absent.tsx'
import { bytes } from '../../parts/format.ts'
import { Problem } from '../../parts/problem.tsx'
import { State } from '../../parts/state.tsx'
import { Table } from '../../parts/table.tsx'
import { Wait } from '../../parts/wait.tsx'
import { useLoaded } from '../../state/list.ts'
import { href } from '../../state/route.ts'
import { Meter, type Room } from './meter.tsx'

interface Allocation { readonly instance_id: string, readonly instance_name: string, readonly cpu: number, readonly memory_bytes: number, readonly disk_bytes: number }
interface Resources { readonly cpu: Room, readonly memory: Room, readonly disk: Room, readonly network: Room, readonly disk_breakdown: Readonly<Record<string, number>>, readonly allocations: readonly Allocation[], readonly cgroups: { readonly active: boolean, readonly reason?: string } }
interface Capabilities { readonly server: { readonly version: string, readonly api_version: string }, readonly host: { readonly os: string, readonly arch: string }, readonly runtimes: ReadonlyArray<{ readonly name: string, readonly available: boolean, readonly version?: string, readonly acceleration?: string, readonly reason?: string }>, readonly network: { readonly subnet?: string, readonly gateway?: string } }

export function Capacity () {
  const resources = useLoaded<Resources>('/resources', ['instance', 'volume', 'image'])
  const capabilities = useLoaded<Capabilities>('/capabilities', [])
  const room = resources.data.value
  const can = capabilities.data.value
  return (
    <>
      {[resources, capabilities].map(({ error, isAbsent, reload }, index) => !isAbsent.value && error.value !== '' && <Problem key={index} text={error.value} onRetry={reload} />)}
      {resources.isAbsent.value ? <Absent what='account of what is taken' /> : room === undefined ? <Wait what='what the host has' /> : <section aria-label='Capacity' class='meters'>
        <Meter title='CPU' room={room.cpu} format={(value) => `${Math.round(value * 10) / 10} vCPU`} /><Meter title='Memory' room={room.memory} format={bytes} /><Meter title='Disk' room={room.disk} format={bytes} /><Meter title='Network' room={room.network} format={(value) => `${bytes(value)}/s`} />
                                                                </section>}
      {room !== undefined && <><h2>Who takes what</h2>{room.allocations.length === 0 ? <p class='quiet'>No instance takes anything now.</p> : <Table
        label='Allocations' rows={room.allocations} keyOf={(row) => row.instance_id} columns={[
          { title: 'Instance', kind: 'wide', sort: (row) => row.instance_name, cell: (row) => <a href={href(['instances', row.instance_id])}>{row.instance_name}</a> },
          { title: 'CPU', kind: 'number', sort: (row) => row.cpu, cell: (row) => row.cpu }, { title: 'Memory', kind: 'number', sort: (row) => row.memory_bytes, cell: (row) => bytes(row.memory_bytes) }, { title: 'Disk', kind: 'number', sort: (row) => row.disk_bytes, cell: (row) => bytes(row.disk_bytes) }
        ]}
                                                                                                                                              />}
        <h2>Disk</h2><dl class='facts'>{Object.entries(room.disk_breakdown).map(([name, value]) => [<dt key={name}>{name.replace('_bytes', '').replaceAll('_', ' ')}</dt>, <dd key={`${name} value`}>{bytes(value)}</dd>])}</dl>
                             </>}
      {can !== undefined && <><h2>Server</h2><dl class='facts'><dt>Version</dt><dd>{can.server.version}, API {can.server.api_version}</dd><dt>Host</dt><dd>{can.host.os} {can.host.arch}</dd><dt>Guests' network</dt><dd>{can.network.subnet ?? 'none'}</dd>{room !== undefined && <><dt>Control groups</dt><dd>{room.cgroups.active ? 'in use' : room.cgroups.reason ?? 'not in use'}</dd></>}</dl>
        <h2>Hypervisors</h2><Table
          label='Hypervisors' rows={can.runtimes} keyOf={({ name }) => name} columns={[
            { title: 'Name', cell: ({ name }) => name }, { title: 'State', cell: ({ available }) => <State value={available ? 'ready' : 'missing'} /> }, { title: 'Version', cell: ({ version }) => version ?? '–' }, { title: 'Instructions run by', cell: ({ acceleration }) => acceleration ?? '–' }, { title: 'Why', kind: 'wide', cell: ({ reason }) => reason ?? '' }
          ]}
                            />
                            </>}
    </>
  )
}
