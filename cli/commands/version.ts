// `berth version`: of this command, and of the server if there is one.
import { version } from '../../core/version.ts'
import { Failure } from '../failure.ts'
import { clean } from '../../core/clean-text.ts'
import type { Run } from '../spec.ts'
import type { Capabilities } from '../views.ts'

export const run: Run = async (session) => {
  const server = await session.api().then(async (api) => ({ url: api.target.url.href, ...(await api.call<Capabilities>('GET', '/capabilities')).server })).catch((error: unknown) => {
    if (!(error instanceof Failure)) throw error
    return { error: error.message }
  })
  if (session.format !== 'table') await session.print({ client: version, server })
  else {
    session.line(`command  ${version}`)
    session.line(clean('error' in server ? `server   - (${server.error})` : `server   ${server.version}, API ${server.api_version}, at ${server.url}`))
  }
  return 0
}
