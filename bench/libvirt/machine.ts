// One machine under libvirt, from its definition to its end.
import { chown, mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { HostCommands } from '../../core/contracts/services.ts'
import type { Workload } from '../../plugins/guest/contract.ts'
import { makeFiles, makeFolder } from '../../plugins/instances/folder/files.ts'
import { pathsOf } from '../../plugins/instances/folder/paths.ts'
import { firstLine, overlayMegabytes } from '../berth.ts'
import { lineInFile, nextCount } from '../output-file.ts'
import { runWorkload } from '../raw-boot.ts'
import type { Libvirt } from './daemon.ts'
import { domainXml, rootfsOf } from './domain.ts'

const name = 'bench'

export interface LibvirtMachine {
  /** Milliseconds from `virsh start` to the program's first line. The disks are made before. */
  start (): Promise<number>
  /** Milliseconds that `virsh managedsave` takes. */
  save (): Promise<number>
  /** Milliseconds from `virsh start` of the saved machine to the next line of its program. */
  restore (): Promise<number>
  end (): Promise<void>
}

export interface LibvirtMachineOptions {
  readonly libvirt: Libvirt
  readonly commands: HostCommands
  /** folder for the machine's files */
  readonly folder: string
  readonly memoryMib: number
  readonly vmmArgv: readonly string[]
  /** a program that continues to count after its first line */
  readonly argv: readonly string[]
}

export async function defineMachine ({ libvirt, commands, folder, memoryMib, vmmArgv, argv }: LibvirtMachineOptions): Promise<LibvirtMachine> {
  const paths = pathsOf(folder, name)
  const identity = libvirt.user === undefined ? undefined : { uid: libvirt.user, gid: libvirt.user }
  const sockets = join(folder, 'sockets')
  await mkdir(dirname(paths.directory), { recursive: true })
  await mkdir(sockets)
  if (identity !== undefined) await chown(sockets, identity.uid, identity.gid)
  const files = { rootfs: rootfsOf(vmmArgv), overlay: paths.overlay, output: paths.output, report: paths.report, vmm: paths.vmm, agentSocket: join(sockets, 'agent.sock') }
  const definition = join(folder, 'domain.xml')
  await writeFile(definition, domainXml({ name, memoryMib, argv: vmmArgv, files }), { mode: 0o644 })
  await libvirt.virsh('define', definition)
  const workload: Workload = { argv, env: { PATH: '/bin' }, cwd: '/', user: '', hostname: name, mounts: [], agent: true }
  return {
    async start () {
      await rm(paths.directory, { recursive: true, force: true })
      await makeFolder(paths)
      await makeFiles(paths, overlayMegabytes * 2 ** 20, identity, commands)
      const seen = lineInFile(paths.output, line => line === firstLine)
      const began = performance.now()
      await Promise.all([libvirt.virsh('start', name), runWorkload(files.agentSocket, workload), seen])
      return performance.now() - began
    },
    async save () {
      const began = performance.now()
      await libvirt.virsh('managedsave', name)
      return performance.now() - began
    },
    async restore () {
      // On the other side, too, the image is on the disk by then.
      await commands.run('sync', ['--file-system', folder])
      const goesOn = await nextCount(paths.output)
      const began = performance.now()
      await Promise.all([libvirt.virsh('start', name), goesOn()])
      return performance.now() - began
    },
    async end () {
      await libvirt.virsh('destroy', name)
    }
  }
}
