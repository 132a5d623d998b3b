// As every VMM with a REST API, Cloud Hypervisor closes its socket before it gives its VM's memory back.
import t from 'tap'
import { createHostCommands } from '../../../core/process/run.ts'
import { makeHandle } from '../../../core/library/vmm/handle.ts'
import { API_SOCKET, DRIVER } from '../../../plugins/hypervisor-cloud-hypervisor/names.ts'
import { createVm } from '../../../plugins/hypervisor-cloud-hypervisor/vm.ts'
import { endsWithoutCountingAsHung } from '../../core/library/vmm/slow-end.ts'

t.test('a VM whose Cloud Hypervisor takes long to end is gone in the end, and does not count as hung before', async (t) => {
  await endsWithoutCountingAsHung(t, {
    driver: DRIVER,
    socket: API_SOCKET,
    protocol: 'rest',
    attach: (process, directory) => createVm(
      makeHandle({ driver: DRIVER, process, directory, vmmVersion: '53.0', image: { key: 'key', shape: {}, vcpus: 1, memoryBytes: 2 ** 20 } }),
      { status: 'hung' },
      { heartbeat: { intervalMs: 20, deadlineMs: 60_000 }, guestTimeoutMs: 60_000, imageTimeoutMs: 60_000, commands: createHostCommands(), onError: (error) => t.fail(String(error)) }
    )
  })
})
