// The snapshots of an instance, and the schedule that takes them.
import { useEffect, useState } from 'preact/hooks'
import { call, isNotFound, messageOf, path } from '../../api/call.ts'
import type { Instance, Snapshot } from '../../api/types.ts'
import { CreateDialog } from '../../forms/create-dialog.tsx'
import { Absent } from '../../parts/absent.tsx'
import { Button } from '../../parts/button.tsx'
import { Empty } from '../../parts/empty.tsx'
import { Problem } from '../../parts/problem.tsx'
import { Table } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'
import { Wait } from '../../parts/wait.tsx'
import { useLoaded } from '../../state/list.ts'
import { askToRemove } from '../remove.ts'
import { useSnapshotColumns } from '../snapshot-columns.tsx'

interface Schedule { readonly interval: string, readonly retention: { readonly max_count?: number, readonly max_age?: string }, readonly next_run_at: string, readonly last_error: string | null }

export function InstanceSnapshots ({ instance: { id, name, state } }: { readonly instance: Instance }) {
  const { data, error, isAbsent, reload } = useLoaded<readonly Snapshot[]>(`/snapshots?source_instance_id=${encodeURIComponent(id)}`, ['snapshot'])
  const { columns, dialog } = useSnapshotColumns(reload)
  const [making, setMaking] = useState<'snapshot' | 'schedule' | undefined>(undefined)
  const [schedule, setSchedule] = useState<Schedule | null | undefined>(undefined)
  const [problem, setProblem] = useState('')
  const readSchedule = (): void => { call<Schedule>('GET', path`/instances/${id}/snapshot-schedule`).then(setSchedule, (fault: unknown) => { if (isNotFound(fault)) setSchedule(null); else setProblem(messageOf(fault)) }) }
  useEffect(readSchedule, [id])
  const close = (): void => { setMaking(undefined) }
  if (isAbsent.value) return <Absent what='snapshots' />
  return (
    <section aria-label='Snapshots'>
      <div class='bar'>
        <Button kind='primary' scope='snapshot:write' onPress={() => { setMaking('snapshot') }}>Take a snapshot</Button>
        <Button scope='snapshot:write' onPress={() => { setMaking('schedule') }}>{schedule == null ? 'Set a schedule' : 'Change the schedule'}</Button>
        {schedule != null && <><span>Every {schedule.interval}, next <Time at={schedule.next_run_at} />{schedule.retention.max_count !== undefined && `, ${schedule.retention.max_count} are kept`}{schedule.retention.max_age !== undefined && `, kept for ${schedule.retention.max_age}`}</span>
          <Button scope='snapshot:delete' label='End the schedule' onPress={() => { askToRemove({ url: path`/instances/${id}/snapshot-schedule`, name: `schedule of ${name}`, goes: ['The schedule; its snapshots stay'], done: readSchedule }) }}>End</Button>
                             </>}
      </div>
      {schedule?.last_error != null && <Problem text={`The last scheduled snapshot failed: ${schedule.last_error}`} />}
      {problem !== '' && <Problem text={problem} />}
      {error.value !== '' && <Problem text={error.value} onRetry={reload} />}
      {data.value === undefined ? error.value === '' && <Wait what='snapshots' /> : data.value.length === 0 ? <Empty title='No snapshot yet.'>{state === 'Running' || state === 'Standby' ? 'One with memory is what runs now; one of the disk needs a stopped instance.' : 'One of the disk can be taken now.'}</Empty>
        : <Table label={`Snapshots of ${name}`} columns={columns} rows={data.value} keyOf={(row) => row.id} />}
      {dialog}
      {making === 'snapshot' && <CreateDialog title='Take a snapshot' spec={{ documented: '/instances/{id}/snapshots', url: path`/instances/${id}/snapshots`, first: ['kind', 'name'], initial: { kind: state === 'Stopped' ? 'Stopped' : 'Standby' } }} onClose={close} onMade={() => { close(); reload() }} />}
      {making === 'schedule' && <CreateDialog title='Set the schedule' spec={{ method: 'PUT', documented: '/instances/{id}/snapshot-schedule', url: path`/instances/${id}/snapshot-schedule`, first: ['interval', 'retention'], initial: { interval: schedule?.interval ?? '24h', 'retention.max_count': String(schedule?.retention.max_count ?? 7) } }} onClose={close} onMade={() => { close(); readSchedule() }} />}
    </section>
  )
}
