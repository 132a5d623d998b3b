// `berth whoami`
import { clean } from '../../core/clean-text.ts'
import type { Run } from '../spec.ts'
import type { Whoami } from '../views.ts'

export const run: Run = async (session) => {
  const api = await session.api()
  const who = await api.call<Whoami>('GET', '/whoami')
  if (session.format !== 'table') await session.print(who)
  else {
    session.line(clean(`${who.name} at ${api.target.url.origin}`))
    session.line(clean(`scopes   ${who.scopes.join(', ')}`))
    if (who.expires_at !== null) session.line(clean(`until    ${who.expires_at}`))
  }
  return 0
}
