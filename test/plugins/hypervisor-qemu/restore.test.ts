// A QEMU that takes nothing of a saved state. QEMU itself is the one of conformance.ts; here its answers come when the test wants them.
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import type { QmpClient } from '../../../plugins/hypervisor-qemu/client.ts'
import { QmpClosed } from '../../../plugins/hypervisor-qemu/errors.ts'
import { loadState } from '../../../plugins/hypervisor-qemu/restore.ts'
import type { Vmm } from '../../../core/library/vmm/start.ts'

t.test('a QEMU that ends before it answers is a restore that failed by what it said last, and no rejection that nobody handles', async (t) => {
  const unhandled: unknown[] = []
  const note = (reason: unknown): void => { unhandled.push(reason) }
  process.on('unhandledRejection', note)
  t.teardown(() => process.off('unhandledRejection', note))
  const qmp: QmpClient = {
    version: '7.2.0',
    closed: Promise.resolve('QEMU closed its control socket'),
    onEvent: () => () => {},
    close () {},
    async execute (command) {
      if (command !== 'migrate-incoming') return {}
      // Long after it has ended.
      await delay(100)
      throw QmpClosed('QEMU closed it')
    }
  }
  const vmm: Vmm = {
    identity: { pid: 1, startTicks: '0', bootId: '' },
    exited: Promise.resolve('exit code 1'),
    async check () {},
    lastWords: async () => 'Not a migration stream'
  }
  await t.rejects(loadState(vmm, qmp, 5000, undefined), { code: 'vm_restore_failed', message: /Not a migration stream/ })
  t.same(unhandled, [])
})
