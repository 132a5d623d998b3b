// `berth context ls`
import { contextsFile, readContexts } from '../connection/contexts.ts'
import { printList } from '../output/list.ts'
import type { Run } from '../spec.ts'

export const run: Run = async (session) => {
  const { current, contexts } = await readContexts(contextsFile(session.environment))
  const all = Object.entries(contexts).map(([name, { url }]) => ({ name, url, current: name === current }))
  return await printList(session, all, { key: ({ name }) => name, columns: [['', (context) => context.current ? '*' : ''], ['NAME', ({ name }) => name], ['SERVER', ({ url }) => url]] })
}
