// `berth image ls`
import { printList } from '../output/list.ts'
import { age, size } from '../output/values.ts'
import type { Run } from '../spec.ts'
import type { Image } from '../views.ts'

export const run: Run = async (session, input) => await printList(session, await (await session.api()).list<Image>('/images', { tags: input.pairs('tag') }), {
  key: ({ name }) => name,
  columns: [
    ['NAME', ({ name }) => name], ['STATUS', ({ status, error }) => error == null ? status : `${status}: ${error}`], ['SIZE', ({ size_bytes: bytes }) => size(bytes)],
    ['DIGEST', ({ digest }) => digest.slice(0, 19)], ['CREATED', ({ created_at: time }) => age(time)]
  ]
})
