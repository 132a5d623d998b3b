// A minute of `npm run torture` with a seed that stays: every invariant holds after each round, and nothing is left.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { missingPrivileges } from '../../plugins/networking/privileges.ts'

const MAIN = fileURLToPath(new URL('main.js', import.meta.url))
const MINUTES = '1'
/** SQLite, so that no other server is needed */
const SEED = '102'
const SHOWN = 8_000

t.test('random calls, and faults of everything around the server, leave every invariant standing', { skip: missingPrivileges() ?? false }, async (t) => {
  const child = spawn(process.execPath, ['--enable-source-maps', MAIN, '--minutes', MINUTES, '--seed', SEED], { stdio: ['ignore', 'pipe', 'pipe'] })
  t.teardown(() => child.kill())
  let said = ''
  const note = (text: Buffer): void => { said += text.toString() }
  child.stdout.on('data', note)
  child.stderr.on('data', note)
  const [code] = await once(child, 'close')
  if (code !== 0) t.fail(said.slice(-SHOWN))
  t.match(said, /\d+ rounds of seed/)
})
