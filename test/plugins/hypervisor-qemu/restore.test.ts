// A saved state on its way into a QEMU that takes none of it. QEMU itself is the one of conformance.long.test.ts; here its answers come when the test wants them.
import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { join } from 'node:path'
import t from 'tap'
import type { QmpClient } from '../../../plugins/hypervisor-qemu/client.ts'
import { QmpClosed } from '../../../plugins/hypervisor-qemu/errors.ts'
import { loadState } from '../../../plugins/hypervisor-qemu/restore.ts'
import type { Vmm } from '../../../core/library/vmm/start.ts'

t.test('a QEMU that closes the stream before it answers is a restore that failed, and no rejection that nobody handles', async (t) => {
  const statePath = join(t.testdir({ state: 'x'.repeat(1024 * 1024) }), 'state')
  const server = createServer((socket) => { socket.once('data', () => socket.resetAndDestroy()) }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const stream = connect((server.address() as AddressInfo).port, '127.0.0.1')
  await once(stream, 'connect')
  const unhandled: unknown[] = []
  const note = (reason: unknown): void => { unhandled.push(reason) }
  process.on('unhandledRejection', note)
  t.teardown(() => process.off('unhandledRejection', note))
  const qmp: QmpClient = {
    version: '7.2.0',
    closed: new Promise(() => {}),
    onEvent: () => () => {},
    close () {},
    async execute (command) {
      if (command !== 'migrate-incoming') return {}
      // Long after the stream has failed.
      await delay(100)
      throw QmpClosed('QEMU closed it')
    }
  }
  const vmm: Vmm = {
    identity: { pid: 1, startTicks: '0', bootId: '' },
    exited: Promise.resolve('exit code 1'),
    stream,
    async check () {},
    lastWords: async () => 'Not a migration stream'
  }
  await t.rejects(loadState(vmm, qmp, statePath, 5000, undefined), { code: 'vm_restore_failed', message: /Not a migration stream/ })
  t.same(unhandled, [])
})
