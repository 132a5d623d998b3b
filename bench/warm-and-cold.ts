// Two Berth servers: one that makes machines from templates, without spare ones, and one whose machines all boot.
import { join } from 'node:path'
import { createHostCommands } from '../core/process/run.ts'
import type { HostCommands } from '../core/contracts/services.ts'
import { serverUnder } from './accelerator.ts'
import { startBerth, type Berth } from './berth.ts'
import { inFolder } from './folder.ts'
import { makeGuestImage } from './guest/image.ts'
import type { Under } from './options.ts'
import { templatesOff, templatesOn, withNamedQemu } from './templates.ts'

export interface WarmAndCold {
  /** Without spare VMs: none is made during a measurement, and none shares memory with a measured one. */
  readonly warm: Berth
  readonly cold: Berth
  readonly commands: HostCommands
  /** folder of the benchmark */
  readonly folder: string
}

/** Runs `work` with both, and ends them. */
export async function withWarmAndCold (work: (servers: WarmAndCold) => Promise<void>, under: Under = { accelerator: 'auto', hypervisor: 'qemu' }): Promise<void> {
  await inFolder(async (folder, signal) => {
    const commands = createHostCommands()
    const image = await makeGuestImage(commands, folder)
    const warm = await startBerth({ folder: join(folder, 'warm'), ...serverUnder(under, withNamedQemu(templatesOn(0))), signal }, image)
    const cold = await startBerth({ folder: join(folder, 'cold'), ...serverUnder(under, withNamedQemu(templatesOff())), signal }, image)
    try {
      await work({ warm, cold, commands, folder })
    } finally {
      await Promise.all([warm.server.stop(), cold.server.stop()])
    }
  })
}
