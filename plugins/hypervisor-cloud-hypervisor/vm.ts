// One VM of Cloud Hypervisor, controlled through its REST API while it runs.
import type { VmBalloon, VmHandle, VmState } from '../../core/library/hypervisor.ts'
import { isBalloonSize } from '../../core/library/vmm/balloon-size.ts'
import { VmmRefused } from '../../core/library/vmm/errors.ts'
import { identityOf } from '../../core/library/vmm/handle.ts'
import { createRestClient, type RestClient } from '../../core/library/vmm/rest-client.ts'
import { createRestImaging } from '../../core/library/vmm/rest-capture.ts'
import type { VmOptions } from '../../core/library/vmm/rest-driver.ts'
import { RestVm } from '../../core/library/vmm/rest-vm.ts'
import { runFolder, type RunFolder } from '../../core/library/vmm/run-folder.ts'
import { AGENT_PORT, connectGuest } from '../../core/library/vmm/vsock.ts'
import { captureOf } from './capture.ts'
import { createPlugging } from './disks.ts'
import { askInfo } from './info.ts'
import { API_SOCKET, DRIVER, VSOCK_SOCKET } from './names.ts'
import type { Slow } from './slow.ts'

/** The details of a handle that only this driver has. */
export interface Details {
  readonly [name: string]: unknown
  /** all memory of a VM with a balloon */
  readonly balloonBytes?: number
  /** whether it has devices of the host, and cannot be saved */
  readonly hasDevices?: boolean
  /** whether its disks share a limit */
  readonly isLimited?: boolean
}

export function folderOf (directory: string): RunFolder { return runFolder(directory, DRIVER, API_SOCKET) }

export function clientOf (folder: RunFolder, timeoutMs: number): RestClient {
  return createRestClient({ name: 'Cloud Hypervisor', folder: folder.path, socket: API_SOCKET, prefix: '/api/v1', timeoutMs })
}

export function createVm (handle: VmHandle, state: VmState, options: VmOptions): RestVm {
  const folder = folderOf(handle.directory)
  const heartbeat = clientOf(folder, options.heartbeat.deadlineMs)
  /** For callers: Cloud Hypervisor answers late while it attends to a device, such as a balloon that fills. */
  const client = clientOf(folder, options.imageTimeoutMs)
  const details: Details = handle.details ?? {}
  let long = 0
  const slow: Slow = async (path, body) => {
    long++
    try {
      await client.ask('PUT', path, body)
    } finally {
      long--
    }
  }
  const stateBy = async (by: RestClient): Promise<VmState | undefined> => (await askInfo(by)).state
  return new RestVm({
    handle,
    identity: identityOf(DRIVER, handle),
    folder,
    reach: (timeoutMs) => connectGuest(folder.path, VSOCK_SOCKET, AGENT_PORT, timeoutMs),
    api: API_SOCKET,
    ask: () => stateBy(heartbeat),
    isBusy: () => long > 0,
    ...details.hasDevices === true ? {} : { imaging: (vm) => createRestImaging({ vm, handle, commands: options.commands, ask: () => stateBy(client) }, captureOf(folder, client, slow)) },
    ...createPlugging({ folder, client, slow, isLimited: details.isLimited === true, timeoutMs: options.guestTimeoutMs }),
    ...details.balloonBytes === undefined ? {} : { balloon: createBalloon(details.balloonBytes, client, slow) }
  }, state, options)
}

export function createBalloon (wholeBytes: number, client: RestClient, slow: Slow): VmBalloon {
  return {
    wholeBytes,
    async bytes () {
      const { memoryBytes } = await askInfo(client)
      if (!isBalloonSize(memoryBytes, wholeBytes)) throw VmmRefused('Cloud Hypervisor', 'GET /vm.info', 'its answer has no memory that the guest can have')
      return memoryBytes
    },
    aim: (bytes) => slow('/vm.resize', { desired_balloon: Math.max(0, wholeBytes - Math.max(0, bytes)) })
  }
}
