// `berth context rm`
import { contextsFile, readContexts, writeContexts } from '../connection/contexts.ts'
import { wrongUsage } from '../failure.ts'
import type { Run } from '../spec.ts'
import { confirmed } from '../terminal/ask.ts'

export const run: Run = async (session, input) => {
  const file = contextsFile(session.environment)
  const { current, contexts } = await readContexts(file)
  const gone = input.many(0)
  const unknown = gone.find((name) => !Object.hasOwn(contexts, name))
  if (unknown !== undefined) throw wrongUsage(`there is no context ${unknown}`, 'berth context ls')
  if (!await confirmed(session, `Forget ${gone.join(', ')} with ${gone.length === 1 ? 'its key' : 'their keys'}?`)) return 0
  await writeContexts(file, {
    contexts: Object.fromEntries(Object.entries(contexts).filter(([name]) => !gone.includes(name))),
    ...current === undefined || gone.includes(current) ? {} : { current }
  })
  return 0
}
