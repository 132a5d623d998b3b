// Attaches disks to a running VM, and detaches them.
import { lstat, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { VmDisk } from '../../core/library/hypervisor.ts'
import { SpecInvalid, VmmRefused, VmmSilent } from '../../core/library/vmm/errors.ts'
import type { RestClient } from '../../core/library/vmm/rest-client.ts'
import type { RestVmParts } from '../../core/library/vmm/rest-vm.ts'
import type { RunFolder } from '../../core/library/vmm/run-folder.ts'
import { askInfo } from './info.ts'
import { diskLink } from './names.ts'
import { checkPlugged, diskConfig } from './spec.ts'
import type { Slow } from './slow.ts'

const LOOK_PAUSE_MS = 10

export interface PluggingOptions {
  readonly folder: RunFolder
  readonly client: RestClient
  readonly slow: Slow
  readonly isLimited: boolean
  /** time for the guest to release a disk */
  readonly timeoutMs: number
}

export function createPlugging ({ folder, client, slow, isLimited, timeoutMs }: PluggingOptions): Required<Pick<RestVmParts, 'plugDisk' | 'unplugDisk'>> {
  return {
    async plugDisk (disk) {
      checkPlugged(disk)
      await lstat(disk.path)
      const { disks } = await askInfo(client)
      const link = diskLink(disk)
      const there = disks.find(({ id }) => id === disk.id)
      if (there?.path === link) return
      if (there !== undefined) throw SpecInvalid(`the disk "${disk.id}" has another unit`)
      const inPlace = disks.find(({ path }) => path === link)
      if (inPlace !== undefined) throw SpecInvalid(`the disk "${inPlace.id}" has the unit ${disk.unit}`)
      await addDisk(folder, slow, disk, isLimited)
    },

    async unplugDisk (id) {
      const { disks, devices } = await askInfo(client)
      const disk = disks.find((one) => one.id === id)
      if (disk === undefined && !devices.includes(id)) return
      // Its config forgets a disk at once; the device is removed when the guest has released it.
      if (disk !== undefined) await slow('/vm.remove-device', { id })
      await gone(client, id, timeoutMs)
      if (disk !== undefined) await rm(join(folder.path, disk.path), { force: true })
    }
  }
}

/** For a VM that has neither this disk nor another one in its place. */
export async function addDisk (folder: RunFolder, slow: Slow, disk: VmDisk, isLimited: boolean): Promise<void> {
  const link = diskLink(disk)
  await folder.link(link, disk.path)
  try {
    await slow('/vm.add-disk', diskConfig(disk, isLimited))
  } catch (error) {
    // Without an answer it may have the disk nevertheless, and would open the link again.
    if (VmmRefused.is(error)) await rm(join(folder.path, link), { force: true })
    throw error
  }
}

async function gone (client: RestClient, id: string, timeoutMs: number): Promise<void> {
  const deadline = performance.now() + timeoutMs
  while ((await askInfo(client)).devices.includes(id)) {
    if (performance.now() > deadline) throw VmmSilent('the guest', `the removal of the disk "${id}"`, timeoutMs)
    // Polled: the API has no events.
    await sleep(LOOK_PAUSE_MS)
  }
}
