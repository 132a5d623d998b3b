// What the machine's kernel begins with: busybox, the modules that it takes to see this host's files, and the script that makes a root of those.
import { readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { packageRoot } from '../../core/package-root.ts'
import { createHostCommands } from '../../core/process/run.ts'
import type { CpioEntry } from '../../plugins/guest/system/cpio.ts'
import { openModules, type KernelModule } from '../../plugins/guest/system/modules.ts'

const BUSYBOX = '/bin/busybox'
/** loaded one after the other, each with what it needs */
const BOOT_MODULES = ['virtio_pci', 'virtio_blk', '9pnet_virtio', '9p', 'erofs', 'overlay']
/** What erofs asks older kernels for by the name of an algorithm, so that no module says that it needs it. It is loaded first, where there is one. */
const CHECKSUM_MODULE = 'crc32c_generic'

/** @param modules where this host has the modules */
export async function initrdEntries (modules: string, scratch: string): Promise<readonly CpioEntry[]> {
  const folder = await openModules(createHostCommands(), modules, scratch)
  const loaded: KernelModule[] = []
  for (const name of [CHECKSUM_MODULE].filter(folder.has).concat(BOOT_MODULES)) await folder.add(name, loaded)
  return [
    ...['bin', 'dev', 'proc', 'sys', 'modules', 'lower', 'data', 'package', 'dependencies', 'upper', 'root'].map((path): CpioEntry => ({ path, kind: 'dir', mode: 0o755 })),
    { path: 'bin/busybox', kind: 'file', mode: 0o755, content: await readFile(BUSYBOX) },
    ...loaded.map(({ content }, index): CpioEntry => ({ path: `modules/${String(index).padStart(2, '0')}.ko`, kind: 'file', mode: 0o644, content })),
    { path: 'init', kind: 'file', mode: 0o755, content: Buffer.from(init(dirname(modules))) }
  ]
}

function init (modulesHere: string): string {
  return `#!/bin/busybox sh
B=/bin/busybox
$B mount -t devtmpfs none /dev
exec > /dev/console 2>&1
$B mount -t proc none /proc
$B mount -t sysfs none /sys
for module in /modules/*.ko; do $B insmod $module; done
$B mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose,ro root /lower
$B mount -t tmpfs -o huge=advise none /upper
over () {
  $B mkdir -p /upper/$3/files /upper/$3/work
  $B mount -t overlay -o lowerdir=$1,upperdir=/upper/$3/files,workdir=/upper/$3/work none $2
}
over /lower /root root
$B mount -t tmpfs -o huge=advise none /root/run
$B mkdir -p /root/run/share /root/run/data /root/run/netns /root/lib/modules
$B mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000 share /root/run/share
$B mount --bind '/lower${modulesHere}' /root/lib/modules
$B mount -t erofs -o ro /dev/vda /package
$B mount -t erofs -o ro /dev/vdb /dependencies
over /package:/dependencies '/root${packageRoot}' package
$B mount -t erofs -o ro /dev/vdc /data
over /data /root/run/data data
for folder in dev proc sys; do $B mount --move /$folder /root/$folder; done
exec $B switch_root /root /bin/sh -c 'export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TMPDIR=/run
/run/share/script.sh
sync
echo o > /proc/sysrq-trigger
read forever < /dev/console'
`
}
