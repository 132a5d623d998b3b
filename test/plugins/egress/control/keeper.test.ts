// How soon the proxy is tried again: whoever can end it must not be able to keep it away from everybody else.
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { mock } from 'node:test'
import { pino } from 'pino'
import t from 'tap'
import { deferred } from '../../../../core/jobs/deferred.ts'
import { listenUnix } from '../../../../core/process/unix-socket.ts'
import { ControlClient } from '../../../../plugins/egress/control/client.ts'
import { Keeper } from '../../../../plugins/egress/control/keeper.ts'
import type { ProxyProcess } from '../../../../plugins/egress/process/proxy-process.ts'
import { testFolder } from '../../../helpers/folder.ts'

interface Attempts { readonly proxy: ProxyProcess, reached (count: number): Promise<readonly number[]> }

/** Notes when each attempt to reach the proxy begins. */
function attempts (ensure: () => Promise<void>, startMs = 20_000): Attempts {
  const times: number[] = []
  let noted: () => void = () => {}
  return {
    proxy: {
      ranges: undefined,
      startMs,
      isFit: async () => true,
      isThere: async () => true,
      requireReach: async () => {},
      stop: async () => {},
      ensure: async () => {
        times.push(performance.now())
        noted()
        await ensure()
      }
    },
    async reached (count) {
      while (times.length < count) await new Promise<void>((resolve) => { noted = resolve })
      return times.slice(1, count).map((time, index) => time - (times[index] ?? 0))
    }
  }
}

function keeperOf (proxy: ProxyProcess, socket: string): Keeper {
  return new Keeper({ proxy, client: new ControlClient(socket), log: pino({ level: 'silent' }), onUp: () => {}, onDown: () => {}, onCheck: async () => {} })
}

t.test('whoever needs the proxy waits as long as its start may take, and learns why that failed', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => { mock.timers.reset() })
  const start = deferred<undefined>()
  const { proxy } = attempts(async () => await start.promise, 60_000)
  const keeper = keeperOf(proxy, join(testFolder(t), 'control.sock'))
  const ready = keeper.ready()
  mock.timers.tick(60_000)
  start.reject(new Error('it has ended: no memory'))
  await t.rejects(ready, { code: 'egress_unavailable', message: /it has ended: no memory/ })
  await keeper.close()
})

t.test('a start that does not end holds nobody up much longer', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => { mock.timers.reset() })
  const start = deferred<undefined>()
  const { proxy } = attempts(async () => await start.promise, 60_000)
  const keeper = keeperOf(proxy, join(testFolder(t), 'control.sock'))
  const ready = keeper.ready()
  mock.timers.tick(65_000)
  await t.rejects(ready, { code: 'egress_unavailable', message: /it did not answer within 65000 ms/ })
  start.reject(new Error('the test has ended'))
  await keeper.close()
})

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

t.test('one that cannot start is tried again at once for the first times, then after longer and longer pauses', async (t) => {
  const { proxy, reached } = attempts(async () => { throw new Error('it does not start') })
  const keeper = keeperOf(proxy, join(testFolder(t), 'control.sock'))
  keeper.start()
  const pauses = await reached(9)
  await keeper.close()
  t.equal(pauses.length, 8)
  const [sixth = 0, seventh = 0, eighth = 0] = pauses.slice(5)
  t.ok(sum(pauses.slice(0, 5)) < sixth + seventh, `five without a pause: ${pauses.join()}`)
  t.ok(seventh > sixth && eighth > seventh, `longer and longer: ${pauses.join()}`)
})

/** Answers one question about its state, then ends the connection, as a proxy does that somebody ends as soon as it is there. */
async function shortLived (folder: string): Promise<Server> {
  const links = new Set<Socket>()
  const server = createServer((socket) => {
    links.add(socket)
    socket.on('error', () => socket.destroy())
    socket.once('data', () => {
      const body = '{"revision":1,"vms":0}'
      socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`, () => { for (const link of links) link.destroy() })
    })
  })
  await listenUnix(server, folder, 'control.sock')
  return server
}

t.test('one that starts, and is ended each time soon after, is started again within a second for as long as that goes on', async (t) => {
  const folder = testFolder(t)
  const server = await shortLived(folder)
  t.teardown(() => server.close())
  const { proxy, reached } = attempts(async () => {})
  const keeper = keeperOf(proxy, join(folder, 'control.sock'))
  keeper.start()
  const pauses = await reached(13)
  await keeper.close()
  const [earlier, latest] = [sum(pauses.slice(8, 10)), sum(pauses.slice(10, 12))]
  t.ok(sum(pauses.slice(0, 5)) < earlier, 'at once at first')
  t.ok(latest < 2 * earlier, `the pause grows no more: ${pauses.join()}`)
})
