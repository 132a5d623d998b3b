// A process and what it has started, for figures of programs that are several processes.
import { readdirSync, readFileSync } from 'node:fs'

/** The process and all that descend from it, itself first. One that ends meanwhile is left out. */
export function processTree (pid: number): number[] {
  return [pid, ...childrenOf(pid).flatMap(processTree)]
}

function childrenOf (pid: number): number[] {
  try {
    const threads = readdirSync(`/proc/${pid}/task`)
    return threads.flatMap((thread) => readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter((word) => word !== '').map(Number))
  } catch {
    return []
  }
}
