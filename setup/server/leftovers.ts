// Finds what still uses a folder: processes that work in it or name it, and mounts below it.
import { readdir, readFile, readlink } from 'node:fs/promises'
import { hasCode } from '../../core/errors/system-code.ts'

export interface Leftover { readonly pid: number, readonly command: string }

/** Processes other than this one that work below `folder` or have it in their arguments. */
export async function processesIn (folder: string): Promise<Leftover[]> {
  const pids = (await readdir('/proc')).filter(name => /^\d+$/.test(name) && Number(name) !== process.pid)
  const found = await Promise.all(pids.map(async (pid): Promise<Leftover | undefined> => {
    const [cwd, command] = await Promise.all([orEmpty(readlink(`/proc/${pid}/cwd`)), orEmpty(readFile(`/proc/${pid}/cmdline`, 'utf8'))])
    const isInside = cwd === folder || cwd.startsWith(`${folder}/`)
    const isNamed = command.includes(`${folder}/`) || command.split('\0').includes(folder)
    return isInside || isNamed ? { pid: Number(pid), command: command.replaceAll('\0', ' ').trim() } : undefined
  }))
  return found.filter(leftover => leftover !== undefined)
}

/** Mount points below `folder`, the deepest first. */
export async function mountsIn (folder: string): Promise<string[]> {
  const lines = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n')
  const points = lines.map(line => line.split(' ')[4] ?? '').map(unescapeMountPoint)
  return points.filter(point => point.startsWith(`${folder}/`)).sort((a, b) => b.length - a.length)
}

/** Spaces and the like are octal in mountinfo. */
function unescapeMountPoint (text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_match, octal: string) => String.fromCharCode(parseInt(octal, 8)))
}

/** A process may end, or belong to somebody else, while it is looked at. */
async function orEmpty (reading: Promise<string>): Promise<string> {
  try {
    return await reading
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ESRCH', 'EACCES', 'EPERM')) return ''
    throw error
  }
}
