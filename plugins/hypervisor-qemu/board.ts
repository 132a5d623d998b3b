// The board that the driver `qemu` gives VMs: a PC with PCI Express.
import type { Board } from './contract.ts'

// PCI slots are part of a memory image: each device has a fixed slot, whatever other devices a VM has. 31 is the chip
// set's.
const SLOT = { ports: 2, entropy: 3, network: 4, balloon: 5, volumes: 6, firstDisk: 8, lastDisk: 30 } as const

export const q35: Board = {
  driver: 'qemu',
  name: 'q35',
  // Without USB and SATA controllers, and without timers and buses that nothing here uses: their set-up and probing take time.
  options: 'hpet=off,usb=off,smbus=off,sata=off',
  arguments: [],
  kernelArguments: { kvm: [], tcg: [] },
  refusal: () => undefined,
  features: ['disk-io-limit', 'hotplug-memory', 'host-devices', 'removable-disks', 'balloon-control'],
  model: (kind) => `${kind}-pci`,
  place (place) {
    const slot = typeof place === 'number' ? SLOT.firstDisk + place : SLOT[place]
    return `bus=pcie.0,addr=0x${slot.toString(16)},disable-legacy=on,romfile=`
  },
  maxDisks: (hostDevices) => SLOT.lastDisk - SLOT.firstDisk + 1 - hostDevices,
  objection: () => undefined
}

/** The slot of a device of the host: at the end of the bus, so that no other device's slot changes. */
export function hostDeviceSlot (index: number): string {
  return `0x${(SLOT.lastDisk - index).toString(16)}`
}

/** The value of `-machine`. */
export function machineOf ({ name, options }: Board): string {
  return `${name},${options},dump-guest-core=off,memory-backend=memory`
}
