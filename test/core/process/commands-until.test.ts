import t from 'tap'
import { commandsUntil } from '../../../core/process/commands-until.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { failureOf } from '../../helpers/failure.ts'

const commands = createHostCommands()

t.test('a command ends with the signal of all of them, and with its own, each with its reason', async (t) => {
  const [all, own] = [new AbortController(), new AbortController()]
  const until = commandsUntil(commands, all.signal)
  t.equal((await until.run('cat', [], { input: 'in' })).stdout, 'in')
  const ofItsOwn = until.run('sleep', ['1000'], { signal: own.signal })
  own.abort(new Error('its own'))
  t.match(await failureOf(ofItsOwn), { message: 'its own' })
  const failures = [until.run('sleep', ['1000']), until.run('sleep', ['1000'], { signal: new AbortController().signal })].map(failureOf)
  all.abort(new Error('that of all'))
  for (const failure of failures) t.match(await failure, { message: 'that of all' })
  t.match(await failureOf(until.run('true', [])), { message: 'that of all' })
})
