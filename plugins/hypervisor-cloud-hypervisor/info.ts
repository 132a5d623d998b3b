// Cloud Hypervisor's report about its VM.
import type { VmState } from '../../core/library/hypervisor.ts'
import { VmmRefused } from '../../core/library/vmm/errors.ts'
import type { RestClient } from '../../core/library/vmm/rest-client.ts'
import { isRecord } from '../../core/json/is-record.ts'
import { DISK_LINK } from './names.ts'

export interface VmInfo {
  readonly state: VmState | undefined
  /** its disks: id, name of the link */
  readonly disks: readonly { readonly id: string, readonly path: string }[]
  /** ids of all present devices, including those that the guest has not released yet */
  readonly devices: readonly string[]
  /** memory that the guest has now, as Cloud Hypervisor says; undefined: it does not */
  readonly memoryBytes: number | undefined
  /** memory that the guest was asked to give up; undefined: it has no balloon */
  readonly balloonBytes: number | undefined
}

/** @throws VmmRefused when the answer is invalid */
export async function askInfo (client: RestClient): Promise<VmInfo> {
  const answer = await client.ask('GET', '/vm.info')
  const config = isRecord(answer) ? answer['config'] : undefined
  if (!isRecord(answer) || !isRecord(config)) throw VmmRefused('Cloud Hypervisor', 'GET /vm.info', 'its answer says nothing of a VM')
  const balloon = config['balloon']
  const tree = answer['device_tree']
  return {
    state: stateOf(answer['state']),
    disks: listOf(config['disks']).map(diskOf),
    devices: isRecord(tree) ? Object.keys(tree) : [],
    memoryBytes: amountOf(answer['memory_actual_size']),
    balloonBytes: isRecord(balloon) ? sizeOf(balloon) : undefined
  }
}

function diskOf ({ id, path }: Record<string, unknown>): VmInfo['disks'][number] {
  if (typeof id !== 'string' || typeof path !== 'string' || !DISK_LINK.test(path)) throw VmmRefused('Cloud Hypervisor', 'GET /vm.info', 'its answer has a disk that it was not given')
  return { id, path }
}

function sizeOf (balloon: Record<string, unknown>): number {
  const size = amountOf(balloon['size'])
  if (size === undefined) throw VmmRefused('Cloud Hypervisor', 'GET /vm.info', 'its answer has a balloon without a size')
  return size
}

function amountOf (value: unknown): number | undefined { return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined }

function stateOf (said: unknown): VmState | undefined {
  switch (said) {
    case 'Running': return { status: 'running' }
    case 'Paused':
    case 'Created': return { status: 'paused' }
    default: return undefined
  }
}

function listOf (value: unknown): Array<Record<string, unknown>> {
  return Array.isArray(value) ? value.filter(isRecord) : []
}
