// A VM's network device: what QEMU is told of it, what may be asked for, and why it could not be had.
import { statfs } from 'node:fs/promises'
import type { VmNetwork } from '../../core/library/hypervisor.ts'
import { hasCode } from '../../core/errors/system-code.ts'
import { LaunchFailed, SpecInvalid } from './errors.ts'

// The kernel's own rule for names of links, less the comma and the percent sign, which mean something to QEMU and to the kernel.
const LINK_NAME = /^[^\s/:,%]{1,15}$/
const NSFS_MAGIC = 0x6e736673
// A unicast address: the lowest bit of the first byte is 0.
const MAC = /^[0-9a-f][02468ace](:[0-9a-f]{2}){5}$/

/**
 * The device without what differs between two VMs, which is what a saved state depends on. The reset of single queues is what vhost-net does not offer: without it
 * a guest finds the same device with vhost-net and without. And no guest announces itself when QEMU asks it to: none is asked (migration.ts), and QEMU 7.2, when it
 * has restored a device that could be asked and is not, ends by SIGSEGV as soon as the guest resets that device (it stops a timer that is not there).
 */
export const NETWORK_DEVICE = 'virtio-net-pci,queue_reset=off,guest_announce=off'

/** The host's side of the device. The TAP exists, with its rules, so no script of QEMU's is wanted. */
export function networkBackend ({ tap }: VmNetwork, vhost: boolean): string {
  return `tap,id=network,ifname=${tap},script=no,downscript=no,vhost=${vhost ? 'on' : 'off'}`
}

/** The guest's side of it. */
export function networkDevice ({ mac }: VmNetwork): string {
  return `${NETWORK_DEVICE},netdev=network,id=nic,mac=${mac}`
}

/** Throws `SpecInvalid` for what is no namespace, TAP or MAC by its form. */
export function checkNetwork ({ namespace, tap, mac }: VmNetwork): void {
  if (!namespace.startsWith('/')) throw SpecInvalid(`network.namespace is "${namespace}", and must be an absolute path`)
  if (!LINK_NAME.test(tap) || tap === '.' || tap === '..') throw SpecInvalid(`network.tap is "${tap}", and must match ${LINK_NAME.source}`)
  if (!MAC.test(mac)) throw SpecInvalid(`network.mac is "${mac}", and must match ${MAC.source}`)
}

/** Throws `LaunchFailed` when the file is no namespace: after a reboot of the host it is missing, or empty. */
export async function checkNamespace ({ namespace }: VmNetwork): Promise<void> {
  if (!await isNamespace(namespace)) throw LaunchFailed(`there is no network namespace at ${namespace}`)
}

async function isNamespace (path: string): Promise<boolean> {
  try {
    return (await statfs(path)).type === NSFS_MAGIC
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return false
    throw error
  }
}

/** What QEMU means when it could not have the TAP: its own words name /dev/net/tun. Empty when they are about something else. */
export function explainTap (words: string, { tap, namespace }: VmNetwork): string {
  if (!words.includes(`/dev/net/tun (${tap})`)) return ''
  if (words.includes('Operation not permitted')) return `the namespace ${namespace} has no TAP ${tap} for the VM's user: `
  return words.includes('resource busy') ? `another process uses the TAP ${tap}: ` : ''
}
