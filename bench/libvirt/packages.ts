// libvirt itself, from Debian packages. None of them starts a service.
import type { HostCommands } from '../../core/contracts/services.ts'
import { installPackages } from '../packages.ts'

/** Installs the packages that are missing. */
export async function installLibvirt (commands: HostCommands): Promise<void> {
  await installPackages(commands, ['libvirt-daemon', 'libvirt-daemon-driver-qemu', 'libvirt-clients'])
}
