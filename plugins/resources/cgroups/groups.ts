// The control groups of VMMs: one for each, with limits, in one folder that is this server's own.
import { readdir, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from '../../../core/contracts/services.ts'
import { hasCode } from '../../../core/errors/system-code.ts'
import type { CgroupState } from '../../instances/room/contract.ts'
import type { Settings } from '../settings.ts'
import { enable, makeGroup, type Controller, type NoPlace, type Place } from './place.ts'

const PERIOD_US = 100_000
// A process that has just ended may still be counted for a moment, and the kernel does not tell when that is over.
const REMOVE_ATTEMPTS = 40
const REMOVE_PAUSE_MS = 25

export interface GroupLimits { readonly vcpus: number, readonly memoryBytes: number }

export interface Groups {
  readonly state: CgroupState
  /** Makes the group, or gives an existing one these limits. Never rejects: when there is no group, the VM has no limits of this kind, and this is logged. */
  make (id: string, limits: GroupLimits, pid?: number): Promise<void>
  /** The folders of the group; empty when it was not made. */
  foldersOf (id: string): readonly string[]
  /** Idempotent. Never rejects. */
  remove (id: string): Promise<void>
  /** Removes all other groups that no process is in. */
  retainOnly (ids: ReadonlySet<string>): Promise<void>
  /** Removes the folder of this server, unless VMs are left in it. */
  close (): Promise<void>
}

export interface GroupsOptions {
  readonly settings: Settings['cgroups']
  /** name of the folder that is this server's alone */
  readonly name: string
  readonly log: Logger
}

/** Makes nothing when there is no place for groups. */
export async function openGroups (place: Place | NoPlace, { settings, name, log }: GroupsOptions): Promise<Groups> {
  if (!('version' in place)) return noGroups(place.reason)
  const { version, folders, accounting, reason } = place
  const controllers = Object.keys(folders).filter((key): key is Controller => key === 'cpu' || key === 'memory' || key === 'pids')
  const homes = [...new Set([...Object.values(folders), ...accounting === undefined ? [] : [accounting]])].map((folder) => join(folder, name))
  try {
    for (const home of homes) await makeGroup(home)
    if (version === 2) for (const home of homes) await enable(home, controllers)
  } catch (error) {
    return noGroups(`control groups cannot be made: ${error instanceof Error ? error.message : String(error)}`)
  }
  const made = new Set<string>()
  const fileOf = (controller: Controller, id: string, file: string): string | undefined => {
    const folder = folders[controller]
    return folder === undefined ? undefined : join(folder, name, id, file)
  }

  async function limit (id: string, limits: GroupLimits): Promise<void> {
    for (const [controller, file, value] of limitFiles(version, settings, limits)) {
      const path = fileOf(controller, id, file)
      if (path !== undefined) await writeFile(path, value)
    }
  }

  async function removeGroup (id: string, attempts = REMOVE_ATTEMPTS): Promise<void> {
    made.delete(id)
    for (const home of homes) await removeFolder(join(home, id), attempts)
  }

  return {
    state: { active: true, version, controllers, ...reason === undefined ? {} : { reason } },
    async make (id, limits, pid) {
      try {
        for (const home of homes) await makeGroup(join(home, id))
        await limit(id, limits)
        if (pid !== undefined) for (const home of homes) await writeFile(join(home, id, 'cgroup.procs'), String(pid))
        made.add(id)
      } catch (error) {
        log.error({ err: error, instance: id }, 'the control group of a VM could not be made; it runs without the limits of one')
        await removeGroup(id).catch((failure: unknown) => { log.debug({ err: failure, instance: id }, 'what was made of a control group stays') })
      }
    },
    foldersOf: (id) => made.has(id) ? homes.map((home) => join(home, id)) : [],
    async remove (id) {
      await removeGroup(id).catch((error: unknown) => { log.warn({ err: error, instance: id }, 'the control group of a VM that has ended could not be removed; the next start of the server tries again') })
    },
    async retainOnly (ids) {
      const there = new Set((await Promise.all(homes.map(groupsIn))).flat())
      for (const id of there) {
        if (ids.has(id)) continue
        await removeGroup(id, 1).catch((error: unknown) => { if (!hasCode(error, 'EBUSY')) log.warn({ err: error, instance: id }, 'a control group that is nobody\'s could not be removed') })
      }
    },
    async close () {
      for (const home of homes) {
        try {
          await rmdir(home)
        } catch (error) {
          // The groups of VMs that run on are in it.
          if (!hasCode(error, 'EBUSY', 'ENOTEMPTY', 'ENOENT')) log.warn({ err: error }, 'a control group of the server could not be removed')
        }
      }
    }
  }
}

function limitFiles (version: 1 | 2, { cpuPerVcpu, cpuOverhead, memoryOverheadBytes, pids }: Settings['cgroups'], { vcpus, memoryBytes }: GroupLimits): Array<[Controller, string, string]> {
  const quota = String(Math.max(1000, Math.round((vcpus * cpuPerVcpu + cpuOverhead) * PERIOD_US)))
  const memory = String(memoryBytes + memoryOverheadBytes)
  const tasks: [Controller, string, string] = ['pids', 'pids.max', String(pids + vcpus)]
  if (version === 2) return [['cpu', 'cpu.max', `${quota} ${PERIOD_US}`], ['memory', 'memory.max', memory], tasks]
  return [['cpu', 'cpu.cfs_period_us', String(PERIOD_US)], ['cpu', 'cpu.cfs_quota_us', quota], ['memory', 'memory.limit_in_bytes', memory], tasks]
}

async function groupsIn (home: string): Promise<string[]> {
  return (await readdir(home, { withFileTypes: true })).filter((entry) => entry.isDirectory()).map(({ name }) => name)
}

async function removeFolder (folder: string, attempts: number): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await rmdir(folder)
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return
      if (attempt === attempts || !hasCode(error, 'EBUSY')) throw error
      await delay(REMOVE_PAUSE_MS)
    }
  }
}

function noGroups (reason: string): Groups {
  return {
    state: { active: false, reason },
    async make () {},
    foldersOf: () => [],
    async remove () {},
    async retainOnly () {},
    async close () {}
  }
}
