// Reads facts about processes from /proc, whoever started them. For a process that has ended, or that this user may not look at, the facts are empty, so it never matches.
import { readdir, readFile, readlink, stat } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { hasCode } from '../errors/system-code.ts'
import { mountsOf } from './mounts.ts'
import { statFields } from './stat.ts'

/** Ids of all processes in /proc; each may have ended before it is looked at. */
export async function processIds (): Promise<number[]> {
  return (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
}

/** Ids of the processes whose working folder is `folder`; empty when the folder does not exist. */
export async function processesIn (folder: string): Promise<number[]> {
  const pids = await processIds()
  const works = await Promise.all(pids.map(async (pid) => await isSameFile(`/proc/${pid}/cwd`, folder)))
  return pids.filter((_pid, index) => works[index])
}

/** Processes whose working folder is below `folder`, which is named without links, and the path from there to it. */
export async function processesBelow (folder: string): Promise<readonly { readonly pid: number, readonly inside: string }[]> {
  const found: { pid: number, inside: string }[] = []
  for (const pid of await processIds()) {
    const inside = relative(folder, await folderOf(pid) ?? '/')
    if (inside !== '' && !inside.startsWith('..')) found.push({ pid, inside })
  }
  return found
}

/** The program and its arguments; empty for a kernel process, and for one without facts. A process can change them. */
export async function argumentsOf (pid: number): Promise<readonly string[]> {
  const text = await unlessGone(readFile(`/proc/${pid}/cmdline`, 'utf8')) ?? ''
  // Each argument ends with a NUL; a process that has overwritten them with a title may have many NULs, or none.
  return text === '' ? [] : text.replace(/\0$/, '').split('\0')
}

/** The variables with which it was started; empty for a process without facts. */
export async function environmentOf (pid: number): Promise<ReadonlyMap<string, string>> {
  const text = await unlessGone(readFile(`/proc/${pid}/environ`, 'utf8')) ?? ''
  return new Map(text.split('\0').map((variable): [string, string] => {
    const at = variable.indexOf('=')
    return [variable.slice(0, at), variable.slice(at + 1)]
  }))
}

/** Path of its working folder, as the kernel reports it: a removed folder has ` (deleted)` at its end. Of a process in a jail it is the path outside. Undefined also for one deeper than a path can be long. */
export async function folderOf (pid: number): Promise<string | undefined> {
  const [folder, top] = await Promise.all(['cwd', 'root'].map(async (name) => await unlessGone(readlink(`/proc/${pid}/${name}`), 'ENAMETOOLONG')))
  // Only the root of another mount namespace has no path of its own.
  if (folder === undefined || top !== '/' || await isSameFile(`/proc/${pid}/root`, '/')) return folder
  const root = await unlessGone(rootOf(pid))
  return root === undefined ? folder : join(root, folder.slice(1))
}

/** Where the root of a process with a mount namespace of its own is for this process; undefined when it is nowhere here. */
async function rootOf (pid: number): Promise<string | undefined> {
  const [own, its] = await Promise.all([mountsOf('self'), mountsOf(pid)])
  const root = its.findLast(({ point }) => point === '/')
  if (root === undefined) return undefined
  const places = own.filter(({ device, root: mounted }) => device === root.device && isBelow(root.root, mounted)).map(({ root: mounted, point }) => join(point, relative(mounted, root.root)))
  for (const place of places) if (await isSameFile(place, `/proc/${pid}/root`)) return place
  return undefined
}

function isBelow (path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder === '/' ? folder : `${folder}/`)
}

/** Its user. */
export async function uidOf (pid: number): Promise<number | undefined> {
  return (await unlessGone(stat(`/proc/${pid}`)))?.uid
}

/** Whether it is in the network namespace that the file `path` names now. */
export async function livesIn (pid: number, path: string): Promise<boolean> {
  return await isSameFile(`/proc/${pid}/ns/net`, path)
}

/** Whether it has a terminal, as an operator's shell does. */
export async function hasTerminal (pid: number): Promise<boolean> {
  const text = await unlessGone(readFile(`/proc/${pid}/stat`, 'utf8'))
  // the fifth from the state on
  return text !== undefined && statFields(text)[4] !== '0'
}

async function isSameFile (path: string, other: string): Promise<boolean> {
  const [one, two] = await Promise.all([unlessGone(stat(path)), unlessGone(stat(other))])
  return one !== undefined && two !== undefined && one.ino === two.ino && one.dev === two.dev
}

async function unlessGone<T> (read: Promise<T>, ...alsoCodes: readonly string[]): Promise<T | undefined> {
  try {
    return await read
  } catch (error) {
    // EINVAL: it is ending, and has no mounts any more
    if (hasCode(error, 'ENOENT', 'ESRCH', 'EACCES', 'EPERM', 'EINVAL', ...alsoCodes)) return undefined
    throw error
  }
}
