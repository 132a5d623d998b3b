// QEMU's board for small VMs: virtio-mmio, and no PCI. README.md says what it cannot do.
import type { Board } from '../hypervisor-qemu/contract.ts'

// The board's transports, of which 24 exist with a second I/O APIC. They are part of a memory image;  QEMU lists them to the guest from the last to the
// first, and the guest names its disks in that order.
const TRANSPORT = { ports: 23, entropy: 22, network: 21, volumes: 20, balloon: 19, firstDisk: 18, lastDisk: 0 } as const

/** @param cpuinfo the host's `/proc/cpuinfo` */
export function microvmBoard (cpuinfo: string): Board {
  const rate = tscKilohertz(cpuinfo)
  return {
    driver: 'qemu-microvm',
    name: 'microvm',
    // With ACPI: Debian's kernel finds virtio-mmio devices only by it. PIC, PIT and clock are left to QEMU, which chooses by the accelerator.
    options: 'acpi=on,ioapic2=on,usb=off,pcie=off',
    arguments: ['-global', 'virtio-mmio.force-legacy=false'],
    // The only timer for measuring the processor's clock is a PIT whose interrupts this board does not deliver. A kernel on a busy host measures nothing, and hangs; with a given rate it skips this.
    kernelArguments: { kvm: [], tcg: rate === undefined ? [] : [`tsc_early_khz=${rate}`] },
    refusal: (accelerator) => accelerator === 'tcg' && rate === undefined
      ? 'QEMU\'s board microvm needs the rate of the processor\'s clock under emulation, and only a host that is itself a virtual machine tells it'
      : undefined,
    features: ['disk-io-limit', 'removable-disks'],
    model: (kind) => `${kind}-device`,
    place: (place) => `bus=virtio-mmio-bus.${typeof place === 'number' ? TRANSPORT.firstDisk - place : TRANSPORT[place]}`,
    maxDisks: () => TRANSPORT.firstDisk - TRANSPORT.lastDisk + 1,
    objection ({ hotplugBytes = 0, devices = [] }) {
      if (hotplugBytes > 0) return 'is to have memory plugged in, and the board microvm takes none'
      return devices.length > 0 ? 'is to have devices of the host, and the board microvm has no PCI' : undefined
    }
  }
}

/** An emulated processor's clock is the host's. On a real processor `cpu MHz` is its current speed, which differs; on a virtual one it is the clock's rate. */
export function tscKilohertz (cpuinfo: string): number | undefined {
  const isVirtual = /^flags\s*:.*\bhypervisor\b/m.test(cpuinfo)
  const [, megahertz] = /^cpu MHz\s*:\s*(\d+(?:\.\d+)?)$/m.exec(cpuinfo) ?? []
  return isVirtual && megahertz !== undefined ? Math.round(Number(megahertz) * 1000) : undefined
}
