// The command that becomes QEMU: limits and privileges are dropped by util-linux's own programs, which then exec QEMU in the same process.
import { stat } from 'node:fs/promises'
import type { VmSpec } from '../../core/contracts/hypervisor.ts'

const KVM = '/dev/kvm'

/** for `prlimit`: a core dump would put a guest's memory on the host's disk */
export const NO_CORE_DUMP = ['--core=0:0'] as const

/** The first element is the program to start. */
export async function vmmCommand (
  binary: string, args: readonly string[], accelerator: 'kvm' | 'tcg', identity: VmSpec['identity']
): Promise<[string, ...string[]]> {
  if (identity === undefined) return ['prlimit', ...NO_CORE_DUMP, binary, ...args]
  const group = accelerator === 'kvm' ? await kvmGroup() : undefined
  return [
    'prlimit', ...NO_CORE_DUMP,
    'setpriv', `--reuid=${identity.uid}`, `--regid=${identity.gid}`, group === undefined ? '--clear-groups' : `--groups=${group}`,
    '--no-new-privs', '--inh-caps=-all', '--bounding-set=-all',
    binary, ...args
  ]
}

/** The group through which /dev/kvm can be used; undefined when all users can, or only root. */
export async function kvmGroup (): Promise<number | undefined> {
  const { gid, mode } = await stat(KVM)
  return gid !== 0 && (mode & 0o060) === 0o060 && (mode & 0o006) !== 0o006 ? gid : undefined
}

/** Why a VMM with a user of its own could not open /dev/kvm; undefined when it can. */
export async function kvmRefusal (): Promise<string | undefined> {
  const { mode } = await stat(KVM)
  if ((mode & 0o006) === 0o006 || await kvmGroup() !== undefined) return undefined
  return `only root may use ${KVM}; VMs run as users of their own, so let the group kvm use it (chgrp kvm ${KVM} && chmod 660 ${KVM})`
}
