// One VM of vfkit, controlled through its REST API while it runs, and the connection to its guest.
import { isRecord } from '../../core/json/is-record.ts'
import type { VmHandle, VmState } from '../../core/library/hypervisor.ts'
import { identityOf } from '../../core/library/vmm/handle.ts'
import { createRestClient, type RestClient } from '../../core/library/vmm/rest-client.ts'
import { RestVm, type RestVmOptions } from '../../core/library/vmm/rest-vm.ts'
import { connectAgent } from './agent.ts'
import { API_SOCKET, DRIVER, VFKIT } from './names.ts'
import type { Place } from './place.ts'

export function clientOf (place: Place, timeoutMs: number): RestClient {
  return createRestClient({ name: VFKIT, folder: place.path, socket: API_SOCKET, timeoutMs })
}

/** The state of vfkit's VM; undefined during a transition. */
export async function askState (client: RestClient): Promise<VmState | undefined> {
  const answer = await client.ask('GET', '/vm/state')
  switch (isRecord(answer) ? answer['state'] : undefined) {
    case 'VirtualMachineStateRunning': return { status: 'running' }
    case 'VirtualMachineStatePaused': return { status: 'paused' }
    default: return undefined
  }
}

export function createVm (handle: VmHandle, state: VmState, place: Place, options: RestVmOptions): RestVm {
  const client = clientOf(place, options.heartbeat.deadlineMs)
  return new RestVm({
    handle,
    identity: identityOf(DRIVER, handle),
    folder: place,
    reach: (timeoutMs) => connectAgent(place.path, timeoutMs),
    api: API_SOCKET,
    ask: () => askState(client)
  }, state, options)
}
