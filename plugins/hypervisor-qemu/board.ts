// The board that the driver `qemu` gives VMs: a PC with PCI Express.
import type { Board } from './contract.ts'

// PCI slots are part of a memory image: each device has a fixed slot, whatever other devices a VM has. 31 is the chip
// set's.
const SLOT = { ports: 2, entropy: 3, network: 4, balloon: 5, volumes: 6, firstDisk: 8, lastDisk: 30 } as const

/**
 * This board tells a kernel that it may have 256 buses, and the kernel then asks all 32 places of each for a device, by ports: 16,000 exits to QEMU, a third of a boot where exits are slow. All devices are on the first bus,
 * which ACPI names (`pcibios_fixup_peer_bridges` in arch/x86/pci/legacy.c).
 */
export const ONE_BUS = 'pci=lastbus=0'

export const q35: Board = {
  driver: 'qemu',
  name: 'q35',
  // Without USB and SATA controllers, and without timers and buses that nothing here uses: their set-up and probing take time.
  options: 'hpet=off,usb=off,smbus=off,sata=off',
  arguments: [],
  kernelArguments: { kvm: [ONE_BUS], tcg: [ONE_BUS] },
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
