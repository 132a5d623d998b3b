// Takes a PCI function from its driver for vfio-pci, and gives it back.
import type { HostCommands } from '../../../core/contracts/services.ts'
import { hasCode } from '../../../core/errors/system-code.ts'
import { BindFailed } from '../errors.ts'
import { PCI_DEVICES, VFIO_DRIVER } from './pci.ts'
import type { Sysfs } from './sysfs.ts'

const DRIVERS = 'bus/pci/drivers'
const LOAD_TIMEOUT_MS = 30_000
/** a unit of systemd's own, which ends once the module is loaded */
const LOADING_UNIT = 'modprobe@vfio_pci.service'

/** Loads vfio-pci unless it is loaded. @throws device_bind_failed */
export async function loadVfio (sysfs: Sysfs, commands: HostCommands, address: string): Promise<void> {
  if (await isThere(sysfs)) return
  try {
    await commands.run('modprobe', [VFIO_DRIVER], { timeoutMs: LOAD_TIMEOUT_MS })
  } catch (error) {
    await haveLoaded(commands)
    if (await isThere(sysfs)) return
    throw BindFailed.from(error, address, `the host's kernel has no driver ${VFIO_DRIVER} loaded, and modprobe failed (${text(error)})`)
  }
  if (!await isThere(sysfs)) throw BindFailed(address, `the host's kernel has no driver ${VFIO_DRIVER}`)
}

/** A service may load no module itself, and systemd does it for whoever may start units. What counts is whether the driver is there then. */
async function haveLoaded (commands: HostCommands): Promise<void> {
  await commands.run('systemctl', ['--no-ask-password', 'start', LOADING_UNIT], { timeoutMs: LOAD_TIMEOUT_MS }).catch(() => {})
}

async function isThere (sysfs: Sysfs): Promise<boolean> {
  return (await sysfs.list(DRIVERS)).includes(VFIO_DRIVER)
}

async function driverOf (sysfs: Sysfs, address: string): Promise<string | undefined> {
  return await sysfs.target(`${PCI_DEVICES}/${address}/driver`)
}

/** Does nothing for a function that vfio-pci has already. @throws device_bind_failed */
export async function bindVfio (sysfs: Sysfs, address: string): Promise<void> {
  try {
    await moveTo(sysfs, address, VFIO_DRIVER)
  } catch (error) {
    throw BindFailed.from(error, address, text(error))
  }
  const driver = await driverOf(sysfs, address)
  if (driver !== VFIO_DRIVER) throw BindFailed(address, driver === undefined ? 'the driver refused it; the kernel\'s messages say why' : `it is bound to ${driver}`)
}

/**
 * Gives a function back to the driver that it had; null: to any driver that takes it. Does nothing for a function that does not exist any more, or has another driver.
 */
export async function restoreDriver (sysfs: Sysfs, address: string, driver: string | null): Promise<void> {
  if (await sysfs.read(`${PCI_DEVICES}/${address}/vendor`) === undefined) return
  await writeOverride(sysfs, address, '\n')
  if (await driverOf(sysfs, address) === VFIO_DRIVER) await unbind(sysfs, address)
  if (driver === null || await driverOf(sysfs, address) !== undefined) return
  // The kernel chooses the driver that is meant for the function. If the function had another one, somebody has chosen that, and it is asked for by name.
  await sysfs.write('bus/pci/drivers_probe', address)
  if (await driverOf(sysfs, address) !== undefined) return
  await sysfs.write(`${DRIVERS}/${driver}/bind`, address)
}

async function moveTo (sysfs: Sysfs, address: string, driver: string): Promise<void> {
  if (await driverOf(sysfs, address) === driver) return
  await writeOverride(sysfs, address, driver)
  if (await driverOf(sysfs, address) !== undefined) await unbind(sysfs, address)
  await sysfs.write('bus/pci/drivers_probe', address)
}

/** From then on only this driver may have the function; an empty line: any driver. */
async function writeOverride (sysfs: Sysfs, address: string, driver: string): Promise<void> {
  await sysfs.write(`${PCI_DEVICES}/${address}/driver_override`, driver)
}

async function unbind (sysfs: Sysfs, address: string): Promise<void> {
  try {
    await sysfs.write(`${PCI_DEVICES}/${address}/driver/unbind`, address)
  } catch (error) {
    // The function has left its driver meanwhile.
    if (!hasCode(error, 'ENOENT', 'ENODEV')) throw error
  }
}

function text (error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
