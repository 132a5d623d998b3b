// `berth ps`
import { printList } from '../output/list.ts'
import { age, shortId } from '../output/values.ts'
import type { Run } from '../spec.ts'
import type { Instance } from '../views.ts'

const RESTING = ['Stopped', 'Shutdown']

export const run: Run = async (session, input) => {
  const api = await session.api()
  const state = input.text('state')
  const all = await api.list<Instance>('/instances', { state, tags: input.pairs('tag') })
  const shown = input.flag('all') || state !== undefined ? all : all.filter((instance) => !RESTING.includes(instance.state))
  return await printList(session, shown, {
    key: ({ id }) => id,
    columns: [
      ['ID', ({ id }) => shortId(id)], ['NAME', ({ name }) => name], ['IMAGE', ({ image }) => image], ['STATE', stateText],
      ['ADDRESS', ({ network }) => network?.ip ?? '-'], ['CREATED', ({ created_at: time }) => age(time)]
    ]
  })
}

function stateText ({ state, exit_code: code }: Instance): string {
  return state === 'Stopped' && code != null ? `${state} (${code})` : state
}
