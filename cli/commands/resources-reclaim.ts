// `berth resources reclaim`
import { parseSize } from '../../core/units.ts'
import { wrongUsage } from '../failure.ts'
import { printList } from '../output/list.ts'
import { size } from '../output/values.ts'
import type { Run } from '../spec.ts'

interface Action { readonly instance_id: string, readonly instance_name: string, readonly status: string, readonly error?: string, readonly assigned_memory_bytes: number, readonly planned_target_guest_memory_bytes: number, readonly applied_reclaim_bytes: number }
interface Answer { readonly actions: readonly Action[] }

export const run: Run = async (session, input) => {
  const written = input.argument(0)
  const bytes = written === '0' ? 0 : parseSize(written)
  if (bytes === undefined) throw wrongUsage(`${written} is no size`, 'write it like 512MB or 2GB; 0 gives everything back')
  const answer = await (await session.api()).call<Answer>('POST', '/resources/memory/reclaim', { body: { reclaim_bytes: bytes, dry_run: input.flag('dryRun'), hold_for: input.text('holdFor'), reason: input.text('reason') } })
  if (session.format !== 'table') {
    await session.print(answer)
    return 0
  }
  return await printList(session, answer.actions, {
    key: ({ instance_id: id }) => id,
    columns: [
      ['NAME', ({ instance_name: name }) => name], ['STATUS', ({ status, error }) => error === undefined ? status : `${status}: ${error}`], ['HAS', ({ assigned_memory_bytes: assigned }) => size(assigned)],
      ['IS LEFT', ({ planned_target_guest_memory_bytes: target }) => size(target)], ['HAS GIVEN', ({ applied_reclaim_bytes: applied }) => size(applied)]
    ]
  })
}
