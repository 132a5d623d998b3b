// The same build by the same builder without a VM: its root is a folder of this host, in a mount namespace of its own.
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { HostCommands } from '../../core/contracts/services.ts'
import { buildArguments, pushArguments } from '../../plugins/builds/builder-vm/buildah-arguments.ts'
import { registriesConf } from '../../plugins/builds/builder-vm/registries.ts'
import type { ServerProcess } from '../../setup/server/process.ts'
import { field } from '../berth.ts'
import { sourceFiles } from './sources.ts'

// root, disk, command…
const ENTER = [
  'R=$1; D=$2; shift 2', 'mount --bind "$R" "$R"', 'mount --bind "$D" "$R/var/lib/containers"', 'mount -t proc proc "$R/proc"', 'mount --rbind /sys "$R/sys"', 'mount --rbind /dev "$R/dev"',
  'mount -t tmpfs tmpfs "$R/run"', 'exec chroot "$R" "$@"'
].join(' && ')
const SOURCE = 'berth/source'

export interface OnHost {
  /** Seconds of one build and its push, with an empty cache. */
  build (run: number): Promise<number>
}

/** @param folder for the root and its disks */
export async function prepareHost (commands: HostCommands, folder: string, server: ServerProcess): Promise<OnHost> {
  const root = join(folder, 'host-root')
  await commands.run('fsck.erofs', [`--extract=${root}`, await builderRootfs(server)])
  await mkdir(join(root, 'var/lib/containers'), { recursive: true })
  const { host, port } = new URL(server.url)
  await writeFile(join(root, 'etc/containers/registries.conf'), registriesConf({ port: Number(port), names: [host], isReadable: true }))
  const auth = Buffer.from(`key:${server.key}`).toString('base64')
  await writeFile(join(root, 'root/auth.json'), JSON.stringify({ auths: { [host]: { auth }, [`127.0.0.1:${port}`]: { auth } } }), { mode: 0o600 })
  return {
    async build (run) {
      const disk = await mkdtemp(join(folder, 'host-disk-'))
      try {
        await mkdir(join(disk, SOURCE), { recursive: true })
        await mkdir(join(disk, 'berth/tmp'))
        for (const [name, content] of sourceFiles()) await writeFile(join(disk, SOURCE, name), content)
        const started = performance.now()
        const inside = async (argv: readonly string[]): Promise<void> => {
          const env = { TMPDIR: '/var/lib/containers/berth/tmp', HOME: '/root', REGISTRY_AUTH_FILE: '/root/auth.json' }
          await commands.run('unshare', ['--mount', '--propagation', 'private', 'sh', '-c', ENTER, 'sh', root, disk, ...argv], { env })
        }
        const plan = { job: { buildArgs: {}, noCache: false, readsRegistry: true }, dockerfile: `/var/lib/containers/${SOURCE}/Dockerfile`, secrets: new Map(), hasBases: false, volumes: [], runtime: 'crun' }
        // On a host with both versions of control groups the other kind of isolation refuses to work; in the VM it is the slower one.
        await inside(buildArguments(plan).map((argument) => argument === '--isolation=oci' ? '--isolation=chroot' : argument))
        await inside(pushArguments(`${host}/bench/host:run${run}`))
        return (performance.now() - started) / 1000
      } finally {
        await rm(disk, { recursive: true, force: true })
      }
    }
  }
}

/** The server's files of the builder's image. */
async function builderRootfs ({ dataDir }: ServerProcess): Promise<string> {
  const note: unknown = JSON.parse(await readFile(join(dataDir, 'builder-image/builder.json'), 'utf8'))
  const digest = String(field(note, 'digest')).replace('sha256:', '')
  return join(dataDir, 'images', digest, 'rootfs.erofs')
}
