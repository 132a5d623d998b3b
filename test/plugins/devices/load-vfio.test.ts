// How vfio-pci is loaded where no device has needed it yet, by programs that stand for the host's own.
import { chmod, mkdir, readFile, rmdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import type { HostCommands } from '../../../core/contracts/services.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { loadVfio } from '../../../plugins/devices/host/binding.ts'
import { createSysfs, type Sysfs } from '../../../plugins/devices/host/sysfs.ts'
import { testFolder } from '../../helpers/folder.ts'

const ADDRESS = '0000:01:00.0'
const REFUSED = 'echo "modprobe: ERROR: could not insert \'vfio_pci\': Operation not permitted" >&2; exit 1'

interface Host { readonly sysfs: Sysfs, readonly commands: HostCommands, readonly driver: string, said (): Promise<string> }

/** @param programs name → what the program does after it has noted its arguments; one that is not named is missing */
async function hostWith (t: Test, programs: (driver: string) => Readonly<Record<string, string>>): Promise<Host> {
  const folder = testFolder(t)
  const driver = join(folder, 'sys/bus/pci/drivers/vfio-pci')
  const [said, real] = [join(folder, 'said'), createHostCommands()]
  await mkdir(dirname(driver), { recursive: true })
  await writeFile(said, '')
  for (const [name, script] of Object.entries(programs(driver))) {
    await writeFile(join(folder, name), `#!/bin/sh\necho "${name} $*" >> ${said}\n${script}\n`)
    await chmod(join(folder, name), 0o755)
  }
  const commands = createHostCommands()
  return {
    driver,
    sysfs: createSysfs(join(folder, 'sys'), commands),
    commands: { run: async (file, args, options) => await real.run(join(folder, file), args, options) },
    said: async () => await readFile(said, 'utf8')
  }
}

t.test('it is loaded by modprobe, and once', async (t) => {
  const host = await hostWith(t, (driver) => ({ modprobe: `mkdir ${driver}`, systemctl: 'exit 1' }))
  await loadVfio(host.sysfs, host.commands, ADDRESS)
  await loadVfio(host.sysfs, host.commands, ADDRESS)
  t.equal(await host.said(), 'modprobe vfio-pci\n')
})

t.test('a server that may load no module, as a service, has systemd load it', async (t) => {
  const host = await hostWith(t, (driver) => ({ modprobe: REFUSED, systemctl: `mkdir ${driver}` }))
  await loadVfio(host.sysfs, host.commands, ADDRESS)
  t.equal(await host.said(), 'modprobe vfio-pci\nsystemctl --no-ask-password start modprobe@vfio_pci.service\n')
  await rmdir(host.driver)
  await loadVfio(host.sysfs, host.commands, ADDRESS)
})

t.test('where nobody loads it, what modprobe said is the reason', async (t) => {
  for (const systemctl of ['exit 1', 'exit 0', undefined]) {
    const host = await hostWith(t, () => ({ modprobe: REFUSED, ...systemctl === undefined ? {} : { systemctl } }))
    await t.rejects(loadVfio(host.sysfs, host.commands, ADDRESS), { code: 'device_bind_failed', message: /0000:01:00\.0 .*modprobe failed .*Operation not permitted/s }, `systemctl: ${systemctl}`)
  }
})
