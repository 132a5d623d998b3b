// `berth image tag`
import { path } from '../api/path.ts'
import type { Run } from '../spec.ts'
import type { Image } from '../views.ts'

export const run: Run = async (session, input) => {
  const api = await session.api()
  const image = await api.call<Image>('POST', path`/images/${input.argument(0)}/tag`, { body: { target: input.argument(1) } })
  if (session.format === 'table') session.line(image.name)
  else await session.print(image)
  return 0
}
