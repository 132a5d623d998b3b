// What no guest can be told is refused at once; and a guest that refuses its workload ends, with the reason.
import { once } from 'node:events'
import t from 'tap'
import { WebSocket } from 'ws'
import { guestRefused } from '../../../../plugins/guest/errors.ts'
import { ADMIN_KEY } from '../../../core/bare-app.ts'
import { startApp } from '../app.ts'

const LONG = 'x'.repeat(70_000)
const tooLarge = (field: string) => ({ status: 400, body: { code: 'invalid_request', message: new RegExp(`^${field}: .* \\d+ bytes.*at most \\d+ fit`) } })

t.test('variables and arguments that no guest can be told are refused at a create, a start and a fork', async (t) => {
  const { call, host, make, waitFor } = await startApp(t)
  const create = async (fields: Record<string, unknown>) => await call('POST', '/instances', { name: 'large', image: 'test', overlay_size: '32MB', ...fields })
  t.match(await create({ env: { A: LONG } }), tooLarge('env'))
  t.match(await create({ env: { A: LONG.slice(0, 40_000), B: LONG.slice(0, 40_000) } }), tooLarge('env'), 'the sum counts')
  t.match(await create({ cmd: [LONG] }), tooLarge('cmd'))
  t.match(await create({ entrypoint: Array.from({ length: 4000 }, () => 'twelve bytes') }), tooLarge('cmd'), 'and what each argument takes beside its text')
  const { image } = host
  host.image = { ...image, env: { A: LONG.slice(0, 40_000) } }
  t.match(await create({ env: { B: LONG.slice(0, 30_000) } }), tooLarge('env'), 'and so does what the image brings')
  host.image = image
  t.equal((await call('GET', '/instances')).body.length, 0)
  await make('web', { env: { A: LONG.slice(0, 50_000) } })
  await waitFor('web', 'Running')
  t.match(await call('POST', '/instances/web/fork', { name: 'twin', from_running: true, env: { B: LONG.slice(0, 20_000) } }), tooLarge('env'))
  await call('POST', '/instances/web/stop')
  t.match(await call('POST', '/instances/web/start', { cmd: [LONG.slice(0, 20_000)] }), tooLarge('env'))
  t.equal((await call('POST', '/instances/web/start')).status, 200)
})

t.test('a NUL in what an image says of its program is refused at a create', async (t) => {
  const { call, host } = await startApp(t)
  const { image } = host
  const table = { Entrypoint: { entrypoint: ['a\0b'] }, Cmd: { cmd: ['x', 'a\0b'] }, Env: { env: { A: 'a\0b' } }, WorkingDir: { workingDir: '/a\0b' }, User: { user: 'a\0b' } }
  for (const [name, fields] of Object.entries(table)) {
    host.image = { ...image, ...fields }
    t.match(await call('POST', '/instances', { name: 'web', image: 'test' }), { status: 400, body: { code: 'invalid_request', message: new RegExp(`^image: .*${name} .*NUL`) } }, name)
  }
  host.image = { ...image, cmd: ['a\0b'] }
  t.equal((await call('POST', '/instances', { name: 'web', image: 'test', overlay_size: '32MB', cmd: ['good'] })).status, 201, 'what the request replaces does not count')
})

t.test('a command that is too large with the environment of its instance is refused by itself', async (t) => {
  const { app, make, host, waitFor } = await startApp(t, { listen: true })
  await make('web', { env: { A: LONG.slice(0, 50_000) } })
  await waitFor('web', 'Running')
  const socket = new WebSocket(`${app.address().replace('http', 'ws')}/instances/web/exec`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } })
  await once(socket, 'open')
  socket.send(JSON.stringify({ command: ['echo', LONG.slice(0, 20_000)] }))
  const [answer] = await once(socket, 'message')
  t.match(JSON.parse(String(answer)), { error: /^command and env: with the environment of the instance they take \d+ bytes; at most 65536 fit/ })
  const [code] = await once(socket, 'close')
  t.equal(code, 1008)
  t.same(host.vm.execs, [])
})

t.test('a guest that refuses its workload ends, with the reason and an exit code that is no success', async (t) => {
  const { call, host, make, waitFor } = await startApp(t)
  // As a guest of an older system, which goes on waiting, and reports success when it is stopped.
  host.runRefusal = guestRefused('the workload is malformed: fields', { errno: 22 })
  await make('web')
  await waitFor('web', 'Stopped')
  t.match((await call('GET', '/instances/web')).body, { state: 'Stopped', exit_code: 255, exit_message: 'exit code 255: the workload is malformed: fields' })
  t.equal(host.vm.state.status, 'gone')
  host.runRefusal = guestRefused('argv names no command', { errno: 22, exitCode: 127 })
  await call('POST', '/instances/web/start')
  await waitFor('web', 'Stopped')
  t.match((await call('GET', '/instances/web')).body, { state: 'Stopped', exit_code: 127, exit_message: 'command not found' })
  host.runRefusal = undefined
  await call('POST', '/instances/web/start')
  t.match((await waitFor('web', 'Running')).body, { state: 'Running' })
})
