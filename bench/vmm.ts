// A VMM as the host sees it: its process, its command line, its memory.
import { readFile } from 'node:fs/promises'
import { OUTPUT_PROGRAM } from '../core/library/vmm/output.ts'
import { processesIn } from '../setup/server/leftovers.ts'

export interface Vmm { readonly pid: number, readonly argv: readonly string[] }

/** QEMU, or a VMM that is told the rest over its API */
const VMM = /qemu-system|--api-sock/

/** The VMM whose working folder is in a machine's folder. */
export async function vmmOf (directory: string): Promise<Vmm> {
  const [vmm] = (await processesIn(directory)).filter(({ command }) => VMM.test(command) && !command.startsWith(OUTPUT_PROGRAM))
  if (vmm === undefined) throw new Error(`no VMM works in ${directory}`)
  return { pid: vmm.pid, argv: (await readFile(`/proc/${vmm.pid}/cmdline`, 'utf8')).split('\0').slice(0, -1) }
}

/** Proportional memory of a process in bytes: its own, and its share of what it has in common with others. */
export async function pssOf (pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8')
  const kilobytes = /^Pss:\s+(\d+) kB/m.exec(text)?.[1]
  if (kilobytes === undefined) throw new Error(`smaps_rollup of ${pid} names no PSS`)
  return Number(kilobytes) * 1024
}
