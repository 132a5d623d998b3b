// The port that a program has, which was told to take any: no other way to give it one is free of races.
import { readdir, readFile, readlink } from 'node:fs/promises'

const LISTENING = '0A'

/** The TCP port (IPv4) that a process listens on, the lowest if there are several; undefined when there is none yet, or no process any more. */
export async function listeningPort (pid: number): Promise<number | undefined> {
  const folder = `/proc/${pid}/fd`
  const files = await readdir(folder).catch(() => [])
  const links = await Promise.all(files.map(async (name) => await readlink(`${folder}/${name}`).catch(() => '')))
  const inodes = new Set(links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []))
  const table = await readFile(`/proc/${pid}/net/tcp`, 'utf8').catch(() => '')
  const ports = table.split('\n').slice(1).map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields[3] === LISTENING && inodes.has(fields[9] ?? ''))
    .map((fields) => parseInt(fields[1]?.split(':')[1] ?? '', 16))
  return ports.sort((a, b) => a - b)[0]
}
