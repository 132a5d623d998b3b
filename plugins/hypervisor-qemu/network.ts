// A VM's network device: what QEMU is told of it, and why it could not be had.
import type { VmNetwork } from '../../core/library/hypervisor.ts'
import { tapProblem } from '../../core/library/vmm/network.ts'

/**
 * The device without what differs between two VMs, which is what a saved state depends on. The reset of single queues is what vhost-net does not offer: without it
 * a guest finds the same device with vhost-net and without. And no guest announces itself when QEMU asks it to: none is asked (migration.ts), and QEMU 7.2, when it
 * has restored a device that could be asked and is not, ends by SIGSEGV as soon as the guest resets that device (it stops a timer that is not there).
 */
export const NETWORK_DEVICE = 'queue_reset=off,guest_announce=off'

/** The host's side of the device. The TAP exists, with its rules, so no script of QEMU's is wanted. */
export function networkBackend ({ tap }: VmNetwork, vhost: boolean): string {
  return `tap,id=network,ifname=${tap},script=no,downscript=no,vhost=${vhost ? 'on' : 'off'}`
}

/** The guest's side of it. */
export function networkDevice ({ mac }: VmNetwork): string {
  return `${NETWORK_DEVICE},netdev=network,id=nic,mac=${mac}`
}

/** What QEMU means when it could not have the TAP: its own words name /dev/net/tun. Empty when they are about something else. */
export function explainTap (words: string, network: VmNetwork): string {
  const problem = words.includes(`/dev/net/tun (${network.tap})`) ? tapProblem(words, network) : undefined
  return problem === undefined ? '' : `${problem}: `
}
