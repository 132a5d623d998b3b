// Finds what still uses a folder: processes that work in it or have it in their arguments, and mounts below it.
import { argumentsOf, folderOf, processIds } from '../../core/process/find.ts'
import { mountsOf } from '../../core/process/mounts.ts'

export interface Leftover { readonly pid: number, readonly command: string }

/** Processes other than this one that work below `folder` or have it in their arguments. */
export async function processesIn (folder: string): Promise<Leftover[]> {
  const pids = (await processIds()).filter((pid) => pid !== process.pid)
  const found = await Promise.all(pids.map(async (pid): Promise<Leftover | undefined> => {
    const [cwd = '', words] = await Promise.all([folderOf(pid), argumentsOf(pid)])
    const isInside = cwd === folder || cwd.startsWith(`${folder}/`)
    const isNamed = words.some((word) => word === folder || word.includes(`${folder}/`))
    return isInside || isNamed ? { pid, command: words.join(' ') } : undefined
  }))
  return found.filter(leftover => leftover !== undefined)
}

/** Mount points below `folder`, the deepest first. */
export async function mountsIn (folder: string): Promise<string[]> {
  return (await mountsOf('self')).map(({ point }) => point).filter(point => point.startsWith(`${folder}/`)).sort((a, b) => b.length - a.length)
}
