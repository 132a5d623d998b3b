// `berth inspect`: everything about instances, with the values of their variables hidden unless they are asked for.
import { path } from '../api/path.ts'
import { inspectEach } from '../output/inspect.ts'
import type { Run } from '../spec.ts'
import type { Instance } from '../views.ts'

export const run: Run = async (session, input) => await inspectEach(session, input.many(0), async (name) => {
  const instance = await (await session.api()).call<Instance>('GET', path`/instances/${name}`)
  if (input.flag('showEnv') || instance.env === undefined) return instance
  return { ...instance, env: Object.fromEntries(Object.keys(instance.env).map((key) => [key, '***'])) }
})
