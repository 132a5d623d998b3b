// Finds the processes of nginx that work in a folder, whoever started them, by their working folder and title.
import type { ProcessIdentity } from '../../../core/contracts/services.ts'
import { argumentsOf, livesIn, processesIn } from '../../../core/process/find.ts'
import { readIdentity } from '../../../core/process/identity.ts'
import { configName, type Plan } from './plan.ts'

export interface Found {
  readonly identity: ProcessIdentity
  /** whether it is the master process, or is about to become it */
  readonly isMaster: boolean
  /** its title */
  readonly words: string
}

export async function findProcesses (folder: string): Promise<Found[]> {
  return (await Promise.all((await processesIn(folder)).map(inspect))).flat()
}

export async function isFit ({ identity: { pid }, isMaster, words }: Found, { fingerprint, namespace }: Plan): Promise<boolean> {
  return isMaster && words.includes(configName(fingerprint)) && await livesIn(pid, namespace)
}

async function inspect (pid: number): Promise<Found[]> {
  const words = (await argumentsOf(pid)).join(' ').trim()
  const identity = readIdentity(pid)
  return identity === undefined || words === '' ? [] : [{ identity, words, isMaster: words.includes('.conf') }]
}
