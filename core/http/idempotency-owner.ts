// Names the process that works on a claim, so that the claim of a process that died can be taken over.
import { hostname } from 'node:os'
import { bootId, isAlive, readIdentity } from '../process/identity.ts'

/** How long a claim of another host counts as being worked on: this host cannot look at the other one's processes. */
const FOREIGN_LEASE_MS = 15 * 60_000

/** This process, as text. */
export function ownOwner (): string {
  const identity = readIdentity(process.pid)
  if (identity === undefined) throw new Error('this process is not in /proc')
  return [hostname().slice(0, 64), identity.bootId, identity.pid, identity.startTicks].join('|')
}

/** Whether the process that made a claim `ageMs` ago may still be working on it. */
export function stillWorks (owner: string, ageMs: number): boolean {
  const [host, boot, pid, startTicks] = owner.split('|')
  if (host !== hostname().slice(0, 64)) return ageMs < FOREIGN_LEASE_MS
  return boot === bootId() && isAlive({ pid: Number(pid), startTicks: startTicks ?? '', bootId: boot })
}
