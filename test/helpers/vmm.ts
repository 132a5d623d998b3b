// The VMM process of an instance, for tests that do to it what a fault would.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { processesIn } from '../../setup/server/leftovers.ts'
import type { TestServer } from './server.ts'

/** The pid of the VMM that runs an instance. */
export async function vmmOf (server: TestServer, id: string): Promise<number> {
  const processes = await processesIn(join(server.dataDir, 'instances', id))
  const found = processes.filter(({ command }) => command.includes('qemu-system'))
  const pid = found[0]?.pid
  if (pid === undefined || found.length > 1) throw new Error(`instance ${id} has ${found.length} VMM processes`)
  return pid
}

/** Resident memory of a process, and the most that it ever had, in bytes. */
export async function memoryOf (pid: number): Promise<{ rssBytes: number, peakBytes: number }> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  const bytes = (field: string): number => Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) * 1024
  return { rssBytes: bytes('VmRSS'), peakBytes: bytes('VmHWM') }
}
