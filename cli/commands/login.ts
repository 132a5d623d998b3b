// `berth login`: checks a key, then remembers it.
import { createApi } from '../api/client.ts'
import { version } from '../../core/version.ts'
import { contextsFile, readContexts, writeContexts } from '../connection/contexts.ts'
import { findTarget, givenKey, parsedUrl } from '../connection/target.ts'
import { wrongUsage } from '../failure.ts'
import type { Run } from '../spec.ts'
import { secret } from '../terminal/ask.ts'

const TRY_MS = 15_000

export const run: Run = async (session, input) => {
  const url = parsedUrl(input.argument(0))
  const name = input.text('name') ?? url.host
  const token = await givenKey({ token: input.text('token'), tokenFile: input.text('tokenFile') }) ?? await secret(session, `Key for ${url.origin}: `)
  if (token === '') throw wrongUsage('a key is needed', 'on the server\'s host: berth token create --name me')
  const target = await findTarget({ url: url.href, token, ca: input.text('ca') }, session.environment)
  if (url.protocol === 'http:' && !LOOPBACK.test(url.hostname)) session.say(`${url.origin} is not encrypted: whoever is on the way sees the key`)
  // Any answer but 401 and 403 shows that the key is valid; it need not have the scope to see instances.
  await createApi(target, `berth-cli/${version}`, TRY_MS, session.interrupted).call('GET', '/instances', { query: { limit: 1 } }).catch((error: unknown) => {
    if (!(error instanceof Error && 'status' in error && error.status === 403)) throw error
  })
  const file = contextsFile(session.environment)
  const known = await readContexts(file)
  await writeContexts(file, { current: name, contexts: { ...known.contexts, [name]: { url: url.href, token, ...target.ca === undefined ? {} : { ca: target.ca } } } })
  session.say(`logged in to ${url.origin} as context ${name}`)
  return 0
}

const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/
