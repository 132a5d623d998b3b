// Names the process that works on a claim, so that the claim of a process that died can be taken over.
import { hostname } from 'node:os'
import { bootId, isAlive, readIdentity } from '../process/identity.ts'

/** of a host in the owners of earlier versions */
const LONGEST_NAME = 64

/** This process, as text. It begins with the id of its host: several hosts of one database may have the same name. */
export function ownOwner (hostId: string): string {
  const identity = readIdentity(process.pid)
  if (identity === undefined) throw new Error('this process is not in /proc')
  return [hostId, identity.bootId, identity.pid, identity.startTicks].join('|')
}

/** Which host an owner is of, by its id; owners of earlier versions name it otherwise. */
export function hostOf (owner: string): string {
  return owner.split('|', 1)[0] ?? ''
}

/** Whether the process that made a claim may still be working on it. This host cannot look at the processes of another one. One of an earlier version names its host by the host's name. */
export function stillWorks (owner: string, hostId: string): boolean {
  const [host, boot, pid, startTicks] = owner.split('|')
  if (host !== hostId && host !== hostname().slice(0, LONGEST_NAME)) return true
  return boot === bootId() && isAlive({ pid: Number(pid), startTicks: startTicks ?? '', bootId: boot })
}
