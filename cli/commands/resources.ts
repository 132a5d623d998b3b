// `berth resources`
import { printList } from '../output/list.ts'
import { size } from '../output/values.ts'
import type { Run } from '../spec.ts'

interface Resource { readonly type: string, readonly capacity: number, readonly allocated: number, readonly available: number }

const KINDS = ['cpu', 'memory', 'disk', 'network', 'disk_io'] as const

export const run: Run = async (session) => {
  const resources = await (await session.api()).call<Record<string, unknown>>('GET', '/resources')
  if (session.format !== 'table') {
    await session.print(resources)
    return 0
  }
  const rows = KINDS.flatMap((kind) => {
    const found = resources[kind] as Resource | null | undefined
    return found == null ? [] : [{ ...found, type: kind }]
  })
  const amount = (type: string, value: number): string => type === 'cpu' ? String(value) : `${size(value)}${type === 'memory' || type === 'disk' ? '' : '/s'}`
  return await printList(session, rows, {
    key: ({ type }) => type,
    columns: [['RESOURCE', ({ type }) => type], ['CAPACITY', ({ type, capacity }) => amount(type, capacity)], ['TAKEN', ({ type, allocated }) => amount(type, allocated)], ['FREE', ({ type, available }) => amount(type, available)]]
  })
}
