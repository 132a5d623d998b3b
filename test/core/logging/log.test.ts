import t from 'tap'
import { createLog } from '../../../core/logging/log.ts'
import { lazyChildren } from '../../../core/logging/lazy-log.ts'

function recorded (level: string): { lines: string[], log: ReturnType<typeof createLog> } {
  const lines: string[] = []
  return { lines, log: createLog({ level, destination: { write: (line) => { lines.push(line) } } }) }
}

t.test('lines are JSON with the level by name and the time in UTC', async (t) => {
  const { lines, log } = recorded('info')
  log.info({ image: 'alpine' }, 'pulled')
  log.debug('not this')
  t.equal(lines.length, 1)
  t.match(JSON.parse(lines[0] ?? ''), { level: 'info', msg: 'pulled', image: 'alpine', time: /^\d{4}-\d\d-\d\dT.*Z$/ })
})

t.test('secrets do not reach the log', async (t) => {
  const { lines, log } = recorded('info')
  log.info({
    authorization: 'hunter2',
    req: { headers: { authorization: 'Bearer hunter2', cookie: 'hunter2' } },
    body: { credentials: { password: 'hunter2' }, env: { TOKEN: 'hunter2' }, spec: { env: { A: 'hunter2' } } },
    err: Object.assign(new Error('x'), { password: 'hunter2' })
  }, 'x')
  log.child({ env: { A: 'hunter2' } }).info('x')
  t.equal(lines.length, 2)
  t.notMatch(lines.join(''), 'hunter2')
})

t.test('of an error the log has what it says, its causes and its code, and no bytes that came with it', async (t) => {
  const { lines, log } = recorded('info')
  const parse = Object.assign(new Error('Parse Error', { cause: new Error('a wrong byte') }), { code: 'HPE_INVALID', rawPacket: Buffer.from('authorization: hunter2') })
  log.info({ err: parse }, 'x')
  log.info({ err: new AggregateError([parse], 'all failed') }, 'x')
  log.info({ err: 'only words' }, 'x')
  t.match(JSON.parse(lines[0] ?? ''), { err: { type: 'Error', message: /Parse Error.*a wrong byte/, stack: /Error/, code: 'HPE_INVALID' } })
  t.match(JSON.parse(lines[1] ?? ''), { err: { message: 'all failed', errors: [{ code: 'HPE_INVALID' }] } })
  t.match(JSON.parse(lines[2] ?? ''), { err: 'only words' })
  t.notMatch(lines.join(''), 'rawPacket')
})

t.test('a lazy child writes what an eager one would, and makes nothing before', async (t) => {
  const { lines, log } = recorded('debug')
  const lazy = lazyChildren(log).child({ reqId: 'r1' }).child({ more: 1 })
  t.equal(lines.length, 0)
  lazy.debug({ a: 1 }, 'said')
  t.match(JSON.parse(lines[0] ?? ''), { reqId: 'r1', more: 1, a: 1, msg: 'said', level: 'debug' })
  lazy.level = 'error'
  lazy.info('not this')
  t.equal(lazy.level, 'error')
  t.equal(lines.length, 1)
})

t.test('a line has its own fields and none of the one before', async (t) => {
  const { lines, log } = recorded('info')
  log.info({ image: 'alpine' }, 'one')
  log.info('two')
  t.strictSame(Object.keys(JSON.parse(lines[1] ?? '')), ['level', 'time', 'pid', 'msg'])
})
