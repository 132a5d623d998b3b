// Starts a VMM's process.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ProcessIdentity } from '../../contracts/services.ts'
import { hasCode } from '../../errors/system-code.ts'
import { endProcess } from '../../process/end.ts'
import { spawnBackground } from '../../process/spawn.ts'
import type { VmNetwork, VmSpec } from '../hypervisor.ts'
import { MEMORY_LOCKED, vmmCommand } from './command.ts'
import { LaunchFailed, MemoryInUse } from './errors.ts'

export interface StartedAs {
  /** its name in errors */
  readonly name: string
  readonly binary: string
  readonly args: readonly string[]
  readonly accelerator: 'kvm' | 'tcg'
  /** its working folder */
  readonly folder: string
  /** prefix of the whole command */
  readonly within?: readonly string[]
  /** files that it finds open for reading, from `FIRST_EXTRA` on, whoever may read them */
  readonly files?: readonly string[]
  /** capabilities of a program that becomes the VMM, and its user, by itself */
  readonly capabilities?: readonly string[]
  /** Resolves once all that it has printed is in its log, after its end; absent: it writes there itself */
  readonly printed?: () => Promise<void>
  /** Explains the VMM's words when they are about the TAP; empty when they are not. */
  explainTap? (words: string, network: VmNetwork): string
}

export interface Vmm {
  readonly identity: ProcessIdentity
  /** Resolves with how it ended. */
  readonly exited: Promise<string>
  /** Throws when the process has ended, with the reason and its last words. */
  check (): Promise<void>
  /** What it has printed since its start, at most a few lines. */
  lastWords (): Promise<string>
}

export async function startVmm (spec: VmSpec, { name, binary, args, accelerator, folder, within = [], files = [], capabilities, printed, explainTap }: StartedAs): Promise<Vmm> {
  const [command, ...words] = await vmmCommand(binary, args, accelerator, spec, capabilities)
  const [file = command, ...rest] = [...within, command, ...words]
  const { identity, ended: exited, end, lastWords } = await spawnBackground({ file, args: rest, folder, log: spec.files.vmm, files })
  const reasonOf = async (how: string): Promise<Error> => {
    if (how === `exit code ${MEMORY_LOCKED}` && spec.memory !== undefined) return MemoryInUse(spec.memory.path)
    await printed?.()
    const words = await lastWords()
    return LaunchFailed(`${spec.network === undefined ? '' : explainTap?.(words, spec.network) ?? ''}${name} ended (${how}): ${words}`)
  }
  if (identity === undefined) throw await reasonOf(await exited)
  // Before the VMM has used any of the guest's memory: the kernel counts memory for the group in which it was first used.
  await joinGroups(spec.groups ?? [], identity, name)
  return {
    identity,
    exited,
    lastWords,
    async check () {
      const how = end()
      if (how !== undefined) throw await reasonOf(how)
    }
  }
}

/** Throws when the process would have to run without its limits. */
async function joinGroups (folders: readonly string[], identity: ProcessIdentity, name: string): Promise<void> {
  try {
    await Promise.all(folders.map((folder) => writeFile(join(folder, 'cgroup.procs'), String(identity.pid))))
  } catch (error) {
    // A process that has ended gives its own reason.
    if (hasCode(error, 'ESRCH')) return
    await endProcess(identity)
    throw LaunchFailed.from(error, `${name} could not be put in its control group: ${error instanceof Error ? error.message : String(error)}`)
  }
}
