// A VM's network device: QEMU's arguments for it, and QEMU's errors about it.
import type { VmNetwork } from '../../core/library/hypervisor.ts'
import { tapProblem } from '../../core/library/vmm/network.ts'

/**
 * The device without what differs between two VMs; a saved state depends on this part. vhost-net does not offer the reset of single queues: without it
 * a guest finds the same device with vhost-net and without. No guest announces itself at QEMU's request: none is requested (migration.ts), and QEMU 7.2 ends by
 * SIGSEGV when it has restored a device that could be asked and is not, as soon as the guest resets that device (it stops a timer that does not exist).
 */
export const NETWORK_DEVICE = 'queue_reset=off,guest_announce=off'

/** The host's side of the device. The TAP exists, with its rules, so QEMU runs no script. */
export function networkBackend ({ tap }: VmNetwork, vhost: boolean): string {
  return `tap,id=network,ifname=${tap},script=no,downscript=no,vhost=${vhost ? 'on' : 'off'}`
}

/** The guest's side of it. */
export function networkDevice ({ mac }: VmNetwork): string {
  return `${NETWORK_DEVICE},netdev=network,id=nic,mac=${mac}`
}

/** Explains QEMU's error about the TAP, which names only /dev/net/tun. Empty for another error. */
export function explainTap (words: string, network: VmNetwork): string {
  const problem = words.includes(`/dev/net/tun (${network.tap})`) ? tapProblem(words, network) : undefined
  return problem === undefined ? '' : `${problem}: `
}
