// `npm run bench -- libvirt`: create, standby and restore against virsh start, managedsave and start of the saved machine: the same kernel, disks, memory and processor.
import { chmod, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createHostCommands } from '../../core/process/run.ts'
import { pathsOf } from '../../plugins/instances/folder/paths.ts'
import { boot, remove, startBerth, type Berth } from '../berth.ts'
import { inFolder } from '../folder.ts'
import { guestProgram, makeGuestImage } from '../guest/image.ts'
import { figureOf, print, series, takeTurns, type Keep, type Series } from '../harness.ts'
import { imageOnDisk } from '../image-on-disk.ts'
import type { Benchmarks, BenchOptions } from '../options.ts'
import { nextCount } from '../output-file.ts'
import { bootModel } from '../raw-boot.ts'
import { templatesOff, templatesOn, warmUp, withoutKept, type Warmth } from '../templates.ts'
import { startLibvirt } from './daemon.ts'
import { defineMachine, type LibvirtMachine } from './machine.ts'
import { installLibvirt } from './packages.ts'

const memoryMib = 256
const machine = { argv: [guestProgram, 'count'], size: `${memoryMib}MB` }

async function libvirt ({ runs }: BenchOptions): Promise<void> {
  await inFolder(async (folder, signal) => {
    const commands = createHostCommands()
    await installLibvirt(commands)
    const image = await makeGuestImage(commands, folder)
    const berth = await startBerth({ folder: join(folder, 'warm'), plugins: withoutKept(templatesOn()), signal }, image)
    const cold = await startBerth({ folder: join(folder, 'cold'), plugins: templatesOff(), signal }, image)
    const daemon = await startLibvirt(commands, join(folder, 'libvirt'))
    try {
      const vmFolder = join(folder, 'vm')
      await mkdir(vmFolder)
      await chmod(vmFolder, 0o711)
      const vmmArgv = (await bootModel(cold, machine)).argv
      const other = await defineMachine({ libvirt: daemon, commands, folder: vmFolder, memoryMib, vmmArgv, argv: machine.argv })
      const note = `256 MB, 1 vCPU; ${(await daemon.virsh('version', '--daemon')).split('\n').filter(line => /^(Running|Using library)/.test(line)).join(', ')}`
      const warmth = await warmUp(berth, machine)
      await measure(berth, warmth, other, runs, note)
    } finally {
      await Promise.all([berth.server.stop(), cold.server.stop(), daemon.stop()])
    }
  })
}

async function measure (berth: Berth, warmth: Warmth, other: LibvirtMachine, runs: number, note: string): Promise<void> {
  const ours = { create: series('create'), standby: series('standby'), restore: series('restore') }
  const theirs = { create: series('virsh start to the first line of output'), standby: series('virsh managedsave'), restore: series('virsh start of the saved machine to the next line of its program') }
  await takeTurns({
    runs,
    sides: [
      async (run, keep) => {
        await throughBerth(berth, warmth, `bench-${run}`, keep, ours)
        await warmth.ready()
      },
      async (_run, keep) => {
        keep(theirs.create, await other.start())
        keep(theirs.standby, await other.save())
        keep(theirs.restore, await other.restore())
        await other.end()
      }
    ]
  })
  print(figureOf('POST /instances to Running and the first line of output, a template and a spare machine ready', 'ms', ours.create.values, { other: theirs.create, ratioAtMost: 1, note }))
  print(figureOf('POST standby to its answer', 'ms', ours.standby.values, { other: theirs.standby, ratioAtMost: 1, note }))
  print(figureOf('POST restore to the next line of the program', 'ms', ours.restore.values, { other: theirs.restore, ratioAtMost: 1, note }))
}

async function throughBerth (berth: Berth, warmth: Warmth, name: string, keep: Keep, { create, standby, restore }: Record<'create' | 'standby' | 'restore', Series>): Promise<void> {
  const began = performance.now()
  const id = await boot(berth, { ...machine, name })
  keep(create, performance.now() - began)
  await warmth.check(id)
  await warmth.ready()
  const asleep = performance.now()
  await berth.api.call('POST', `/instances/${id}/standby`)
  keep(standby, performance.now() - asleep)
  await imageOnDisk(berth, id)
  const goesOn = await nextCount(pathsOf(berth.server.dataDir, id).output)
  const woken = performance.now()
  await Promise.all([berth.api.call('POST', `/instances/${id}/restore`), goesOn()])
  keep(restore, performance.now() - woken)
  await remove(berth, id)
}

export const benchmarks: Benchmarks = { libvirt }
