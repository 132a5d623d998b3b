// QEMU closes its control socket before it gives its VM's memory back.
import t from 'tap'
import { createHostCommands } from '../../../core/process/run.ts'
import { QMP_SOCKET } from '../../../plugins/hypervisor-qemu/args.ts'
import { makeHandle } from '../../../plugins/hypervisor-qemu/handle.ts'
import { QemuVm } from '../../../plugins/hypervisor-qemu/vm.ts'
import { endsWithoutCountingAsHung } from '../../core/library/vmm/slow-end.ts'

t.test('a VM whose QEMU takes long to end is gone in the end, and does not count as hung before', async (t) => {
  await endsWithoutCountingAsHung(t, {
    driver: 'qemu',
    socket: QMP_SOCKET,
    protocol: 'qmp',
    attach: (process, directory) => new QemuVm(
      makeHandle({ driver: 'qemu', process, directory, vmmVersion: '10.0.0', image: { key: 'key', shape: {}, vcpus: 1, memoryBytes: 2 ** 20 }, balloonBytes: undefined }),
      { status: 'hung' },
      { heartbeat: { intervalMs: 20, deadlineMs: 60_000 }, imageTimeoutMs: 60_000, commands: createHostCommands(), onError: (error) => t.fail(String(error)) }
    )
  })
})
