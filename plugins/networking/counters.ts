// Traffic of guests, from the kernel's table of network devices.
import { readFile } from 'node:fs/promises'
import { hasCode } from '../../core/errors/system-code.ts'
import type { NetworkCounters } from './contract.ts'
import type { NetworkTools } from './tools.ts'

/** @param pid a process that lives in the namespace: its view of the table costs no command */
export async function readDeviceTable (tools: NetworkTools, pid: number | undefined): Promise<string> {
  if (pid !== undefined) {
    try {
      return await readFile(`/proc/${pid}/net/dev`, 'utf8')
    } catch (error) {
      if (!hasCode(error, 'ENOENT', 'ESRCH', 'EINVAL')) throw error
    }
  }
  return await tools.run('cat', ['/proc/net/dev'])
}

/** What the VM behind a TAP has received and sent: what the host sends is what the VM receives. */
export function countersOf (table: string, tap: string): NetworkCounters | undefined {
  const line = table.split('\n').find((candidate) => candidate.trimStart().startsWith(`${tap}:`))
  const fields = line?.slice(line.indexOf(':') + 1).trim().split(/\s+/).map(Number)
  const received = fields?.[0]
  const sent = fields?.[8]
  return received === undefined || sent === undefined ? undefined : { rxBytes: sent, txBytes: received }
}
