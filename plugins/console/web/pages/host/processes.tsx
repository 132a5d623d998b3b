// The processes that the server keeps running, each with those that it has started.
import { useEffect } from 'preact/hooks'
import { bytes, milliseconds } from '../../parts/format.ts'
import { Problem } from '../../parts/problem.tsx'
import { State } from '../../parts/state.tsx'
import { Table } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'
import { Wait } from '../../parts/wait.tsx'
import { useLoaded } from '../../state/list.ts'
import { href } from '../../state/route.ts'

interface Taken { readonly pid: number | null, readonly since: string | null, readonly memory_bytes: number | null, readonly cpu_seconds: number | null }
interface Kept extends Taken {
  readonly name: string
  readonly plugin: string
  readonly instance_id: string | null
  readonly state: string
  readonly restarts: number | null
  readonly last_end: { readonly at: string, readonly reason: string } | null
  readonly children: ReadonlyArray<Taken & { readonly command: string }>
}
interface Processes { readonly server: Taken, readonly processes: readonly Kept[] }
type Row = Taken & Pick<Kept, 'name' | 'plugin' | 'instance_id' | 'state' | 'restarts' | 'last_end'>

const EVERY_MS = 5000

export function HostProcesses () {
  const { data, error, reload } = useLoaded<Processes>('/host/processes', [])
  useEffect(() => {
    const timer = setInterval(() => { if (document.visibilityState === 'visible') reload() }, EVERY_MS)
    return () => { clearInterval(timer) }
  }, [])
  if (data.value === undefined) return error.value === '' ? <Wait what='which processes there are' /> : <Problem text={error.value} onRetry={reload} />
  const { server, processes } = data.value
  const rows = [{ ...NOTHING, name: 'the server itself', ...server }, ...processes.flatMap((each): Row[] => [each, ...each.children.map((child) => ({ ...NOTHING, plugin: each.plugin, name: `${each.name} › ${child.command}`, ...child }))])]
  return (
    <section aria-label='Processes'>
      {error.value !== '' && <Problem text={error.value} onRetry={reload} />}
      <Table
        label='Processes' rows={rows} keyOf={({ name, pid }) => `${name} ${pid ?? ''}`} columns={[
          { title: 'Process', kind: 'wide', sort: ({ name }) => name, cell: ({ name, instance_id: instance }) => instance === null ? name : <a href={href(['instances', instance])}>{name}</a> }, { title: 'Plugin', sort: ({ plugin }) => plugin, cell: ({ plugin }) => plugin === '' ? '–' : plugin },
          { title: 'State', sort: ({ state }) => state, cell: ({ state }) => <State value={state} /> }, { title: 'Since', sort: ({ since }) => since ?? '', cell: ({ since }) => <Time at={since} /> },
          { title: 'Started again', kind: 'number', sort: ({ restarts }) => restarts ?? -1, cell: ({ restarts }) => restarts ?? '–' }, { title: 'Last end', kind: 'wide', cell: ({ last_end: end }) => end === null ? '–' : <span>{end.reason}, <Time at={end.at} /></span> },
          { title: 'Memory', kind: 'number', sort: (row) => row.memory_bytes ?? 0, cell: (row) => bytes(row.memory_bytes) }, { title: 'CPU time', kind: 'number', sort: (row) => row.cpu_seconds ?? 0, cell: (row) => row.cpu_seconds === null ? '–' : milliseconds(row.cpu_seconds * 1000) }, { title: 'PID', kind: 'number', sort: ({ pid }) => pid ?? 0, cell: ({ pid }) => pid ?? '–' }
        ]}
      />
    </section>
  )
}

const NOTHING = { plugin: '', instance_id: null, state: 'running', restarts: null, last_end: null } as const
