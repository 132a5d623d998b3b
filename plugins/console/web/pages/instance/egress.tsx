// The mediated way out of one instance.
import type { Instance } from '../../api/types.ts'
import { EgressTable } from '../egress/egress-table.tsx'
import { Absent } from '../../parts/absent.tsx'
import { Empty } from '../../parts/empty.tsx'
import { Problem } from '../../parts/problem.tsx'
import { useEgress } from '../../state/egress.ts'

export function InstanceEgress ({ instance }: { readonly instance: Instance }) {
  const { rows, modes, error, isAbsent } = useEgress([instance])
  const mode = modes.value.get(instance.id)
  if (isAbsent.value) return <Absent what='mediated way out' />
  if (error.value !== '') return <Problem text={error.value} />
  if (mode === 'none') return <Empty title='Nothing stands between this instance and the network.'>A policy is given when an instance is created: <code>network.egress.enabled</code>, with <code>credentials</code> that it may use and never sees.</Empty>
  return rows.value.length === 0 ? <Empty title='No request yet.'>What {instance.name} asks for stands here as it happens, also what is refused.</Empty>
    : <EgressTable label={`Requests of ${instance.name}`} rows={rows.value} single />
}
