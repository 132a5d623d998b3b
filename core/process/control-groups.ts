// Where control groups are mounted, and which one a process is in: by what the kernel says.
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { hasCode } from '../errors/system-code.ts'
import { mountsIn } from './mounts.ts'

/** A mounted hierarchy. */
export interface Hierarchy {
  readonly version: 1 | 2
  readonly mount: string
  /** the part of the hierarchy that the mount shows */
  readonly root: string
  /** only of version 1 */
  readonly controllers: readonly string[]
}

/** @param mountinfo the text of that file of /proc; a later mount at the same place hides an earlier one, so the last one comes first */
export function hierarchiesIn (mountinfo: string): Hierarchy[] {
  return mountsIn(mountinfo).reverse().flatMap(({ type, root, point, options }) => {
    if (type !== 'cgroup' && type !== 'cgroup2') return []
    return [{ version: type === 'cgroup2' ? 2 as const : 1 as const, mount: point, root, controllers: options }]
  })
}

/** The folder of a process's group in a hierarchy of version 2; undefined when the mount does not show it. @param cgroup the text of that file of /proc */
export function groupFolder ({ mount, root }: Hierarchy, cgroup: string): string | undefined {
  const path = /^0::(\/.*)$/m.exec(cgroup)?.[1]
  if (path === undefined) return undefined
  if (root === '/' || root.startsWith('/..')) return path.startsWith('/..') ? undefined : resolve(mount, `.${path}`)
  return path === root || path.startsWith(`${root}/`) ? resolve(mount, `.${path.slice(root.length)}`) : undefined
}

/** The texts of those files of `/proc/self`. */
export interface GroupFacts { readonly mountinfo: string, readonly cgroup: string }

/** At once, as each create asks: the kernel has these texts in memory, and a thread of the pool takes ten times as long. */
export function groupFacts (): GroupFacts {
  return { mountinfo: readFileSync('/proc/self/mountinfo', 'utf8'), cgroup: readFileSync('/proc/self/cgroup', 'utf8') }
}

/** The folders of the process's own group of version 2, and of all above it, since what holds for a service or a slice is not repeated in the groups below. */
export function groupsOf ({ mountinfo, cgroup }: GroupFacts): string[] {
  const hierarchy = hierarchiesIn(mountinfo).find(({ version }) => version === 2)
  const own = hierarchy === undefined ? undefined : groupFolder(hierarchy, cgroup)
  if (hierarchy === undefined || own === undefined) return []
  const folders = [own]
  for (let folder = own; folder.length > hierarchy.mount.length; folder = dirname(folder)) folders.push(dirname(folder))
  return folders
}

/** A file of a group; undefined where there is none: the root has no limits, nor has a hierarchy without the controller. */
export function textIn (path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}
