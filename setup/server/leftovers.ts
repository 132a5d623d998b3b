// Finds what still uses a folder: processes that work in it or have it in their arguments, and mounts below it.
import { readFile } from 'node:fs/promises'
import { argumentsOf, folderOf, processIds } from '../../core/process/find.ts'

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
  const lines = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n')
  const points = lines.map(line => line.split(' ')[4] ?? '').map(unescapeMountPoint)
  return points.filter(point => point.startsWith(`${folder}/`)).sort((a, b) => b.length - a.length)
}

/** mountinfo writes spaces and the like in octal. */
function unescapeMountPoint (text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_match, octal: string) => String.fromCharCode(parseInt(octal, 8)))
}
