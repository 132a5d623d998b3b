// Reads which mounts a process sees, from /proc.
import { readFile } from 'node:fs/promises'

export interface Mount {
  /** of the file system: `major:minor` */
  readonly device: string
  /** the folder or file of the file system that is mounted */
  readonly root: string
  /** where, from the root of the process */
  readonly point: string
  /** of the file system: `ext4`, `cgroup2` */
  readonly type: string
  /** of the file system, such as its controllers */
  readonly options: readonly string[]
}

/** In the order in which they were made: a later one hides an earlier one at the same point. @throws Error when there is no such process, or this user may not look at it */
export async function mountsOf (pid: number | 'self'): Promise<Mount[]> {
  return mountsIn(await readFile(`/proc/${pid}/mountinfo`, 'utf8'))
}

/** The same of the text of that file. */
export function mountsIn (mountinfo: string): Mount[] {
  return mountinfo.split('\n').filter((line) => line !== '').map((line) => {
    const [before = '', after = ''] = line.split(' - ')
    const [, , device = '', root = '', point = ''] = before.split(' ')
    const [type = '', , options = ''] = after.split(' ')
    return { device, root: unescape(root), point: unescape(point), type, options: options.split(',') }
  })
}

/** Spaces and the like are written in octal. */
function unescape (text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_match, octal: string) => String.fromCharCode(parseInt(octal, 8)))
}
