import t from 'tap'
import { Ambiguous, InvalidRequest, InvalidState, NameConflict, NotFound, PluginDisabled } from '../../../core/errors/common.ts'
import { BerthError, defineError } from '../../../core/errors/define.ts'
import { STATUS_BY_KIND } from '../../../core/errors/kinds.ts'

t.test('each shared error has its code, status and a message that names the thing', async (t) => {
  const table: ReadonlyArray<readonly [BerthError, string, number, string]> = [
    [InvalidRequest('name is required'), 'invalid_request', 400, 'name is required'],
    [NotFound('instance', 'web'), 'not_found', 404, 'instance web does not exist'],
    [Ambiguous('instance', 'ab'), 'ambiguous', 409, 'ab matches more than one instance; use the full id'],
    [PluginDisabled('volumes', 'volumes[0]'), 'plugin_disabled', 400, 'volumes[0] needs the plugin volumes, which is not enabled on this server'],
    [InvalidState('instance is Stopped'), 'invalid_state', 409, 'instance is Stopped'],
    [NameConflict('instance web exists'), 'name_conflict', 409, 'instance web exists']
  ]
  for (const [error, code, status, message] of table) t.match(error, { code, statusCode: status, message })
})

t.test('an error is recognised by its code and kind, and keeps what led to it', async (t) => {
  const Busy = defineError('busy', 'unavailable', (host: string) => `${host} is busy`)
  const cause = new Error('why')
  const error = Busy.from(cause, 'a')
  t.equal(Busy.is(error), true)
  t.equal(error.cause, cause)
  t.equal(error.statusCode, STATUS_BY_KIND.unavailable)
  t.equal('cause' in Busy('a'), false)
  for (const other of [new BerthError('busy', 'conflict', ''), NotFound('a', 'b'), new Error('busy'), undefined]) t.equal(Busy.is(other), false)
})
