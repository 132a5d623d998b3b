// vfkit's arguments for a VM, and the specifications that this driver refuses. Pure.
import type { VmSpec } from '../../core/library/hypervisor.ts'
import { DriverCannot, SpecInvalid } from '../../core/library/vmm/errors.ts'
import { AGENT_PORT, OUTPUT_PORT, REPORT_PORT, VSOCK_ARGUMENT } from '../../core/library/vmm/vsock.ts'
import { AGENT_SOCKET, API_SOCKET, diskLink, DRIVER, INITRD, KERNEL, VSOCK } from './names.ts'

const MIB = 2 ** 20
// Also the identifier of a block device, which has at most 20 bytes.
const DISK_ID = /^[a-z][a-z0-9-]{0,19}$/
/** most bytes of a socket's path on macOS */
const MOST_SOCKET_BYTES = 103
/** Paths that can be in an option of vfkit, and in a URL, without escaping. */
const PLAIN_PATH = /^\/[A-Za-z0-9._/-]*$/

/** @throws DriverCannot, SpecInvalid */
export function checkSpec ({ hotplugBytes = 0, diskBytesPerSecond, devices = [], network, vcpus, memoryBytes, disks }: VmSpec): void {
  if (hotplugBytes > 0) throw DriverCannot(DRIVER, 'plug memory into a VM')
  if (diskBytesPerSecond !== undefined) throw DriverCannot(DRIVER, 'limit the rate of disks')
  if (devices.length > 0) throw DriverCannot(DRIVER, 'give a VM devices of the host')
  if (network !== undefined) throw DriverCannot(DRIVER, 'connect a VM to a TAP device, which macOS has none of')
  if (disks.some(({ unit }) => unit !== undefined)) throw DriverCannot(DRIVER, 'give a VM disks that come and go')
  if (!Number.isInteger(vcpus) || vcpus < 1) throw SpecInvalid(`vcpus is ${vcpus}, and must be at least 1`)
  if (!(memoryBytes >= MIB)) throw SpecInvalid(`memoryBytes is ${memoryBytes}, and must be at least ${MIB}`)
  const ids = disks.map(({ id }) => id)
  for (const [index, id] of ids.entries()) {
    if (!DISK_ID.test(id) || ids.indexOf(id) !== index) throw SpecInvalid(`the disk id "${id}" is not unique, or does not match ${DISK_ID.source}`)
  }
}

/** @param at the run folder, by a path that is short and plain: vfkit takes sockets and files by whole paths, in texts of its own */
export function vfkitArguments ({ vcpus, memoryBytes, kernel, disks }: Pick<VmSpec, 'vcpus' | 'memoryBytes' | 'kernel' | 'disks'>, at: string): string[] {
  const devices = [
    // Goes to vfkit's standard output, which is a file that no restart truncates: a file that vfkit opens itself would be emptied at each start, and `stdio` needs a terminal.
    'virtio-serial,logFilePath=/dev/fd/1',
    'virtio-rng',
    ...disks.map(({ id, readonly }) => `virtio-blk,path=${at}/${diskLink(id)},deviceId=${id}${readonly ? ',readonly' : ''}`),
    // One for each port. Without the word `connect`, the guest is the one that connects.
    `virtio-vsock,port=${AGENT_PORT},socketURL=${at}/${AGENT_SOCKET},connect`,
    ...[OUTPUT_PORT, REPORT_PORT].map((port) => `virtio-vsock,port=${port},socketURL=${at}/${VSOCK}_${port},listen`)
  ]
  return [
    '--cpus', String(vcpus), '--memory', String(Math.ceil(memoryBytes / MIB)),
    '--kernel', `${at}/${KERNEL}`, '--initrd', `${at}/${INITRD}`, '--kernel-cmdline', [...kernel.arguments, VSOCK_ARGUMENT].join(' '),
    '--restful-uri', `unix://${at}/${API_SOCKET}`,
    ...devices.flatMap((device) => ['--device', device])
  ]
}

/** @throws SpecInvalid when vfkit cannot be given a socket in this folder */
export function checkPlace (at: string): void {
  const longest = `${at}/${VSOCK}_${REPORT_PORT}`
  if (!PLAIN_PATH.test(longest) || longest.length > MOST_SOCKET_BYTES) throw SpecInvalid(`the data folder leads to ${longest}, and vfkit takes only paths of at most ${MOST_SOCKET_BYTES} letters, digits and ._/-`)
}
