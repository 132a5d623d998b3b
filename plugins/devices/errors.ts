// The errors of the devices plugin. Codes are API: they never change.
import { defineError } from '../../core/errors/define.ts'

export const InvalidName = defineError('invalid_name', 'invalid', (rule: string) => `name: ${rule}`)

export const InvalidPciAddress = defineError('invalid_pci_address', 'invalid', (text: string) =>
  `pci_address: must be the address of a PCI device such as 0000:a2:00.0, and not ${JSON.stringify(text)}`)

export const DeviceNotFound = defineError('device_not_found', 'not-found', (address: string) => `pci_address: this host has no PCI device ${address}`)

export const NameTaken = defineError('conflict', 'conflict', (name: string) => `name: a device named ${name} is registered already`)

export const AddressTaken = defineError('conflict', 'conflict', (address: string, name: string) => `pci_address: device ${address} is registered already, as ${name}`)

/** The device cannot be unregistered. */
export const DeviceAttached = defineError('in_use', 'conflict', (name: string, instanceId: string) =>
  `device ${name} is attached to instance ${instanceId}; delete the instance first`)

/** The device cannot be attached, since it has one instance at most. */
export const DeviceInUse = defineError('device_in_use', 'conflict', (name: string, why: string) => `device ${name} cannot be attached: ${why}`)

/** The host cannot give the device to a VM alone, or cannot do so safely. */
export const NotAssignable = defineError('device_not_assignable', 'conflict', (address: string, why: string) =>
  `PCI device ${address} cannot be given to an instance: ${why}`)

/** The host's kernel refuses to bind the device, or does not come back from it. */
export const BindFailed = defineError('device_bind_failed', 'conflict', (address: string, why: string) =>
  `PCI device ${address} could not be bound to vfio-pci: ${why}`)

/** The device's driver does not answer when it is asked for a share. */
export const ShareFailed = defineError('device_bind_failed', 'conflict', (address: string, why: string) => `PCI device ${address} could not give a share of itself: ${why}`)

export const NoSuchProfile = defineError('invalid_request', 'invalid', (profile: string, known: readonly string[]) =>
  `gpu.profile: no GPU of this host offers ${JSON.stringify(profile)}; ${known.length === 0 ? 'none can be shared' : `there ${known.length === 1 ? 'is' : 'are'} ${known.join(', ')}`}`)

export const ProfileUsedUp = defineError('insufficient_resources', 'conflict', (profile: string) => `gpu.profile: no GPU of this host has room for another ${profile}`)
