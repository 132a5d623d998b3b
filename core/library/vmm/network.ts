// Checks the network of a VM, for any VMM.
import { statfs } from 'node:fs/promises'
import type { VmNetwork } from '../hypervisor.ts'
import { hasCode } from '../../errors/system-code.ts'
import { LaunchFailed, SpecInvalid } from './errors.ts'

// The kernel's own rule for names of links, less the comma and the percent sign, which mean something to QEMU and to the kernel.
const LINK_NAME = /^[^\s/:,%]{1,15}$/
const NSFS_MAGIC = 0x6e736673
// A unicast address: the lowest bit of the first byte is 0.
const MAC = /^[0-9a-f][02468ace](:[0-9a-f]{2}){5}$/

/** Throws `SpecInvalid` for an invalid form of a namespace, TAP or MAC. */
export function checkNetwork ({ namespace, tap, mac }: VmNetwork): void {
  if (!namespace.startsWith('/')) throw SpecInvalid(`network.namespace is "${namespace}", and must be an absolute path`)
  if (!LINK_NAME.test(tap) || tap === '.' || tap === '..') throw SpecInvalid(`network.tap is "${tap}", and must match ${LINK_NAME.source}`)
  if (!MAC.test(mac)) throw SpecInvalid(`network.mac is "${mac}", and must match ${MAC.source}`)
}

/** Throws `LaunchFailed` when the file is not a namespace: after a reboot of the host it is missing, or empty. */
export async function checkNamespace ({ namespace }: VmNetwork): Promise<void> {
  if (!await isNamespace(namespace)) throw LaunchFailed(`there is no network namespace at ${namespace}`)
}

/**
 * Why a VMM could not open the TAP. Without rights it cannot create one either, so `not permitted` means that its user has none. Undefined when its words are about something else.
 * @param words the VMM's own, or those of an error that quotes them
 */
export function tapProblem (words: string, { tap, namespace }: VmNetwork): string | undefined {
  if (!/\btaps?\b|\/dev\/net\/tun/i.test(words)) return undefined
  if (words.includes('Operation not permitted')) return `the namespace ${namespace} has no TAP ${tap} for the VM's user`
  return words.includes('resource busy') ? `another process uses the TAP ${tap}` : undefined
}

async function isNamespace (path: string): Promise<boolean> {
  try {
    return (await statfs(path)).type === NSFS_MAGIC
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return false
    throw error
  }
}
