// What one instance costs the host, and how much of it is its own. Asked for one at a time, since the kernel has to walk the VM's memory for it.
import { lstat, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Type, type Static } from 'typebox'
import { hasCode } from '../../../core/errors/system-code.ts'
import { sharedBytes } from '../../../core/fs/shared-blocks.ts'
import { nullable } from '../../../core/http/schemas.ts'
import type { HostCommands, ProcessIdentity } from '../../../core/contracts/services.ts'
import { isAlive } from '../../../core/process/identity.ts'
import type { InstancePaths } from '../folder/paths.ts'

const closed = { additionalProperties: false } as const
const MOST_FILES = 1000
const DEEPEST = 3

export const InstanceFootprint = Type.Object({
  instance_id: Type.String(),
  memory: nullable(Type.Object({
    resident_bytes: Type.Integer({ description: 'Memory that the process of its VM has in use (RSS)' }),
    proportional_bytes: Type.Integer({ description: 'The same, with each page that several processes have divided by their number (PSS): what this VM adds to the host' }),
    own_bytes: Type.Integer({ description: 'Pages that no other process has' }),
    shared_bytes: Type.Integer({ description: 'Pages that other processes have as well' })
  }, { ...closed, description: 'null without a VM, or when the kernel does not tell it: `memory_reason`. What the host\'s cache keeps of disks is not in it' })),
  memory_reason: Type.Optional(Type.String()),
  disk: Type.Object({
    total_bytes: Type.Integer({ description: 'Blocks of all its files. The disk of its image is not among them: all instances of the image read that one' }),
    writable_disk_bytes: Type.Integer({ description: 'Of these, its writable disk and the overlays of its volumes' }),
    memory_bytes: Type.Integer({ description: 'Of these, its memory and its memory image' }),
    other_bytes: Type.Integer({ description: 'Of these, logs and the rest' }),
    shared_bytes: nullable(Type.Integer({ description: 'Blocks of disk and memory that other files have as well (reflinks); null when the file system does not tell it' })),
    own_bytes: nullable(Type.Integer({ description: 'total_bytes less shared_bytes: what its deletion frees' }))
  }, closed)
}, { ...closed, $id: 'InstanceFootprint' })

export type InstanceFootprint = Static<typeof InstanceFootprint>

/** @param vm the process of its VM, or of the one that is kept of it */
export async function footprintOf (id: string, vm: ProcessIdentity | undefined, paths: InstancePaths, commands: HostCommands): Promise<InstanceFootprint> {
  const [memory, disk] = await Promise.all([memoryOfVm(vm), diskOf(paths, commands)])
  return { instance_id: id, ...memory, disk }
}

async function memoryOfVm (vm: ProcessIdentity | undefined): Promise<Pick<InstanceFootprint, 'memory' | 'memory_reason'>> {
  if (vm === undefined) return { memory: null, memory_reason: 'it has no VM' }
  try {
    const rollup = await readFile(`/proc/${vm.pid}/smaps_rollup`, 'utf8')
    // Another process may have been given the same pid.
    if (!isAlive(vm)) return { memory: null, memory_reason: 'its VM has ended' }
    return { memory: parseRollup(rollup) }
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ESRCH')) return { memory: null, memory_reason: 'its VM has ended' }
    if (hasCode(error, 'EACCES', 'EPERM')) return { memory: null, memory_reason: 'the kernel does not let this server look at the memory of its VM' }
    throw error
  }
}

/** Of /proc/PID/smaps_rollup. */
export function parseRollup (text: string): NonNullable<InstanceFootprint['memory']> {
  const figures = new Map([...text.matchAll(/^(\w+): +(\d+) kB$/gm)].map(([, name = '', kilobytes]) => [name, Number(kilobytes) * 1024]))
  const of = (...names: readonly string[]): number => names.reduce((sum, name) => sum + (figures.get(name) ?? 0), 0)
  return { resident_bytes: of('Rss'), proportional_bytes: of('Pss'), own_bytes: of('Private_Clean', 'Private_Dirty'), shared_bytes: of('Shared_Clean', 'Shared_Dirty') }
}

async function diskOf (paths: InstancePaths, commands: HostCommands): Promise<InstanceFootprint['disk']> {
  const files = await filesIn(paths.directory, DEEPEST)
  const isDisk = (path: string): boolean => path === paths.overlay || path.startsWith(`${paths.volumes}/`)
  const isMemory = (path: string): boolean => path === paths.memory || path === paths.base.memory || Object.values(paths.image).some((folder) => path.startsWith(`${folder}/`))
  const sum = (some: typeof files): number => some.reduce((total, { bytes }) => total + bytes, 0)
  const total = sum(files)
  const disks = files.filter(({ path }) => isDisk(path))
  const memory = files.filter(({ path }) => isMemory(path))
  const shared = await sharedOf([...disks, ...memory].map(({ path }) => path), commands)
  return {
    total_bytes: total,
    writable_disk_bytes: sum(disks),
    memory_bytes: sum(memory),
    other_bytes: total - sum(disks) - sum(memory),
    shared_bytes: shared ?? null,
    own_bytes: shared === undefined ? null : Math.max(0, total - shared)
  }
}

async function sharedOf (paths: readonly string[], commands: HostCommands): Promise<number | undefined> {
  let total = 0
  for (const path of paths) {
    const bytes = await unlessGone(sharedBytes(commands, path), 0)
    if (bytes === undefined) return undefined
    total += bytes
  }
  return total
}

async function filesIn (folder: string, depth: number): Promise<Array<{ readonly path: string, readonly bytes: number }>> {
  const found: Array<{ readonly path: string, readonly bytes: number }> = []
  for (const entry of (await unlessGone(readdir(folder, { withFileTypes: true }), [])).slice(0, MOST_FILES)) {
    const path = join(folder, entry.name)
    if (entry.isDirectory() && depth > 1) found.push(...await filesIn(path, depth - 1))
    else if (entry.isFile()) found.push({ path, bytes: await unlessGone(lstat(path).then(({ blocks }) => blocks * 512), 0) })
  }
  return found
}

/** Files come and go while they are looked at. */
async function unlessGone<T> (work: Promise<T>, instead: T): Promise<T> {
  return await work.catch((error: unknown) => {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return instead
    throw error
  })
}
