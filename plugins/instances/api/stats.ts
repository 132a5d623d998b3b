// What a VM uses, from the kernel's figures about its VMM process.
import { readFile } from 'node:fs/promises'
import { hasCode } from '../../../core/errors/system-code.ts'
import type { Vm } from '../../../core/library/hypervisor.ts'
import { statFields, TICKS_PER_SECOND } from '../../../core/process/stat.ts'
import type { NetworkService } from '../../networking/contract.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { memoryOf } from '../parts/room.ts'
import type { InstanceStats } from './schemas.ts'

// fixed by the ABI on x86-64; arm64 kernels of Debian use the same
const PAGE_BYTES = 4096

interface Usage { readonly cpuSeconds: number, readonly rssBytes: number, readonly vmsBytes: number }

const NOTHING: Usage = { cpuSeconds: 0, rssBytes: 0, vmsBytes: 0 }

/** An instance without a VM uses nothing: all figures are 0. @param kept the paused VM of an instance in standby; it uses memory and is connected to nothing */
export async function statsOf (instance: LiveInstance, network: NetworkService | undefined, kept: Vm | undefined): Promise<InstanceStats> {
  const { record } = instance
  const vm = instance.session?.vm ?? kept
  const [usage, traffic] = vm === undefined ? [NOTHING, undefined] : await Promise.all([usageOf(vm.handle.pid, vm.handle.startTicks), vm === kept ? undefined : network?.counters(record.id)])
  return {
    instance_id: record.id,
    instance_name: record.name,
    allocated_vcpus: record.spec.vcpus,
    allocated_memory_bytes: memoryOf(record.spec),
    cpu_seconds: usage.cpuSeconds,
    memory_rss_bytes: usage.rssBytes,
    memory_vms_bytes: usage.vmsBytes,
    network_rx_bytes: traffic?.rxBytes ?? 0,
    network_tx_bytes: traffic?.txBytes ?? 0,
    memory_utilization_ratio: usage.rssBytes / memoryOf(record.spec),
    vm_kept: vm !== undefined && vm === kept
  }
}

async function usageOf (pid: number, startTicks: string): Promise<Usage> {
  let stat
  let statm
  try {
    [stat, statm] = await Promise.all([readFile(`/proc/${pid}/stat`, 'utf8'), readFile(`/proc/${pid}/statm`, 'utf8')])
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ESRCH')) return NOTHING
    throw error
  }
  return parseUsage(stat, statm, startTicks)
}

/** Parses the two files. A process that was given the same pid meanwhile is another one, and counts as none. */
function parseUsage (stat: string, statm: string, startTicks: string): Usage {
  const fields = statFields(stat)
  if (fields[19] !== startTicks) return NOTHING
  const [sizePages, residentPages] = statm.split(' ').map(Number)
  return {
    cpuSeconds: (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND,
    rssBytes: (residentPages ?? 0) * PAGE_BYTES,
    vmsBytes: (sizePages ?? 0) * PAGE_BYTES
  }
}
