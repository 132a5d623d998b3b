// `berth context use`
import { contextsFile, readContexts, writeContexts } from '../connection/contexts.ts'
import { wrongUsage } from '../failure.ts'
import type { Run } from '../spec.ts'

export const run: Run = async (session, input) => {
  const file = contextsFile(session.environment)
  const known = await readContexts(file)
  const name = input.argument(0)
  if (!Object.hasOwn(known.contexts, name)) throw wrongUsage(`there is no context ${name}`, 'berth context ls')
  await writeContexts(file, { ...known, current: name })
  return 0
}
