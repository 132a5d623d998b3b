// What /proc shows of processes, whoever started them. One that has ended meanwhile, or is none of this user's business, has no facts: it is nobody that is looked for.
import { readdir, readFile, readlink, stat } from 'node:fs/promises'
import { hasCode } from '../errors/system-code.ts'

/** Ids of all processes that this one's /proc shows; each may have ended before it is looked at. */
export async function processIds (): Promise<number[]> {
  return (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
}

/** Ids of the processes whose working folder `folder` is; none when there is no such folder. */
export async function processesIn (folder: string): Promise<number[]> {
  const pids = await processIds()
  const works = await Promise.all(pids.map(async (pid) => await isSameFile(`/proc/${pid}/cwd`, folder)))
  return pids.filter((_pid, index) => works[index])
}

/** The program and its arguments; empty for a process of the kernel, and for one without facts. A process can change them. */
export async function argumentsOf (pid: number): Promise<readonly string[]> {
  const text = await unlessGone(readFile(`/proc/${pid}/cmdline`, 'utf8')) ?? ''
  // Each is ended by a NUL; a title that a process has written over them may be padded by many, or have none.
  return text === '' ? [] : text.replace(/\0$/, '').split('\0')
}

/** The variables that it was started with; empty for one without facts. */
export async function environmentOf (pid: number): Promise<ReadonlyMap<string, string>> {
  const text = await unlessGone(readFile(`/proc/${pid}/environ`, 'utf8')) ?? ''
  return new Map(text.split('\0').map((variable): [string, string] => {
    const at = variable.indexOf('=')
    return [variable.slice(0, at), variable.slice(at + 1)]
  }))
}

/** Path of its working folder, as the kernel says it: ` (deleted)` stands behind one that has been removed. */
export async function folderOf (pid: number): Promise<string | undefined> {
  return await unlessGone(readlink(`/proc/${pid}/cwd`))
}

/** Whose it is. */
export async function uidOf (pid: number): Promise<number | undefined> {
  return (await unlessGone(stat(`/proc/${pid}`)))?.uid
}

/** Whether it lives in the network namespace that the file `path` stands for now. */
export async function livesIn (pid: number, path: string): Promise<boolean> {
  return await isSameFile(`/proc/${pid}/ns/net`, path)
}

/** Whether it has a terminal, as an operator's shell does. */
export async function hasTerminal (pid: number): Promise<boolean> {
  const text = await unlessGone(readFile(`/proc/${pid}/stat`, 'utf8'))
  // The second field is the command's name in brackets and may hold anything; the fifth behind it is the terminal.
  return text !== undefined && text.slice(text.lastIndexOf(')') + 2).split(' ')[4] !== '0'
}

async function isSameFile (path: string, other: string): Promise<boolean> {
  const [one, two] = await Promise.all([unlessGone(stat(path)), unlessGone(stat(other))])
  return one !== undefined && two !== undefined && one.ino === two.ino && one.dev === two.dev
}

async function unlessGone<T> (read: Promise<T>): Promise<T | undefined> {
  try {
    return await read
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ESRCH', 'EACCES', 'EPERM')) return undefined
    throw error
  }
}
