// The command that becomes a VMM: the namespace is entered, and limits and privileges are dropped, by util-linux's own programs, which then exec the VMM
// in the same process.
import { stat } from 'node:fs/promises'
import { hasCode } from '../../errors/system-code.ts'
import type { VmMemoryFile, VmSpec } from '../hypervisor.ts'

export const KVM = '/dev/kvm'

/** for `prlimit`: a core dump would put a guest's memory on the host's disk */
const NO_CORE_DUMP = ['--core=0:0'] as const

/** Arguments of `setpriv` for the VMM of a probe: it ends with a killed server, since nobody else knows of it. */
export function probing (binary: string, args: readonly string[]): string[] {
  return ['--pdeathsig', 'KILL', '--', 'prlimit', ...NO_CORE_DUMP, binary, ...args]
}

/** exit code for a locked memory file; no VMM ends with it */
export const MEMORY_LOCKED = 75

const DEVICE_OVERHEAD_BYTES = 2 ** 30

type CommandSpec = Pick<VmSpec, 'identity' | 'memory' | 'network'> & Partial<Pick<VmSpec, 'memoryBytes' | 'hotplugBytes' | 'devices'>>

/**
 * The first element is the program to start.
 * @param capabilities those of a program that becomes the VMM, and its user, by itself; absent: it has that user from the beginning, and none
 */
export async function vmmCommand (
  binary: string, args: readonly string[], accelerator: 'kvm' | 'tcg', spec: CommandSpec, capabilities?: readonly string[]
): Promise<[string, ...string[]]> {
  const { memory, network } = spec
  const lock = memory === undefined ? [] : memoryLock(memory)
  const enter = network === undefined ? [] : ['nsenter', `--net=${network.namespace}`]
  const rights = capabilities === undefined ? await unprivileged(accelerator, spec, lockedBytes(spec)) : privileged(capabilities)
  const [file, ...rest] = [...lock, ...enter, ...rights, binary, ...args]
  if (file === undefined) throw new Error('a command needs a program')
  return [file, ...rest]
}

/**
 * The lock belongs to the open file that the VMM inherits, so it lasts exactly as long as the process, whoever watches it: one writer, or
 * any number of readers.
 */
function memoryLock ({ path, sharing }: VmMemoryFile): string[] {
  return ['flock', sharing === 'shared' ? '--exclusive' : '--shared', '--nonblock', '--no-fork', '--conflict-exit-code', String(MEMORY_LOCKED), path]
}

/**
 * The beginning of a VMM's command. A VMM that keeps the server's user still loses its capabilities when it has a network: with them it could do
 * anything in the namespace, and would create a missing TAP itself, without any rules.
 */
export async function unprivileged (accelerator: 'kvm' | 'tcg', { identity, network }: Pick<VmSpec, 'identity' | 'network'>, memlockBytes?: number): Promise<string[]> {
  const limited = ['prlimit', ...NO_CORE_DUMP, ...memlockBytes === undefined ? [] : [`--memlock=${memlockBytes}:${memlockBytes}`]]
  if (identity === undefined && network === undefined) return limited
  const group = accelerator === 'kvm' && identity !== undefined ? await kvmGroup() : undefined
  const user = identity === undefined ? [] : [`--reuid=${identity.uid}`, `--regid=${identity.gid}`, group === undefined ? '--clear-groups' : `--groups=${group}`]
  return [...limited, 'setpriv', ...user, '--no-new-privs', '--inh-caps=-all', '--bounding-set=-all']
}

/**
 * The beginning of the command of a program that gives up root by itself. It drops all of its capabilities with that, and as there are no new privileges, nothing that it starts gets one again: so what is
 * left in the bounding set is of no use.
 */
function privileged (capabilities: readonly string[]): string[] {
  return ['prlimit', ...NO_CORE_DUMP, 'setpriv', '--no-new-privs', '--inh-caps=-all', `--bounding-set=${['-all', ...capabilities.map((name) => `+${name}`)].join(',')}`]
}

/** How much memory a VMM may lock when devices write to it: the guest's, and that of the devices themselves, for which libvirt adds the same amount. */
function lockedBytes ({ memoryBytes = 0, hotplugBytes = 0, devices = [] }: CommandSpec): number | undefined {
  return devices.length === 0 ? undefined : memoryBytes + hotplugBytes + DEVICE_OVERHEAD_BYTES
}

/** The group that may use /dev/kvm; undefined when all users may, or only root, or there is no such device. */
async function kvmGroup (device = KVM): Promise<number | undefined> {
  const found = await stat(device).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  })
  return found !== undefined && found.gid !== 0 && (found.mode & 0o060) === 0o060 && (found.mode & 0o006) !== 0o006 ? found.gid : undefined
}

/** Why a VMM with its own user could not open /dev/kvm; undefined when it can. */
export async function kvmRefusal (device = KVM): Promise<string | undefined> {
  const { mode } = await stat(device)
  if ((mode & 0o006) === 0o006 || await kvmGroup(device) !== undefined) return undefined
  return `only root may use ${device}; VMs run as users of their own, so let the group kvm use it (chgrp kvm ${device} && chmod 660 ${device})`
}
