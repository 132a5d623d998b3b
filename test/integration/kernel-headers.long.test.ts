// The kernel's modules and headers in real machines: a module is built in one and loaded, by hand and by DKMS; without them it cannot be; and no file of an image is hidden.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { shell } from '../helpers/counter.ts'
import { debianArchive } from '../helpers/debian.ts'
import { runCommand } from '../helpers/exec.ts'
import { busyboxImage, imageReady, push } from '../helpers/images.ts'
import { createShell, waitFor } from '../helpers/machine.ts'
import { pushLayout, writeLayout } from '../helpers/oci.ts'
import { startTestServer, type TestServer } from '../helpers/server.ts'
import { tar } from '../helpers/tar.ts'

const PACKAGES = ['bash', 'coreutils', 'dkms', 'findutils', 'gawk', 'gcc', 'grep', 'gzip', 'hostname', 'kmod', 'libelf1', 'libssl3', 'make', 'patch', 'sed', 'tar', 'util-linux', 'xz-utils']
const HELLO = [
  '#include <linux/module.h>', '#include <linux/init.h>',
  'static int __init hello_init(void) { pr_err("hello from out of the tree\\n"); return 0; }', 'static void __exit hello_exit(void) { }',
  'module_init(hello_init);', 'module_exit(hello_exit);', 'MODULE_LICENSE("GPL");', ''
].join('\n')
const DKMS = ['PACKAGE_NAME="hello"', 'PACKAGE_VERSION="1.0"', 'BUILT_MODULE_NAME[0]="hello"', 'DEST_MODULE_LOCATION[0]="/updates/dkms"', 'AUTOINSTALL="yes"', ''].join('\n')
/** What an image brings, beside what the disk has. */
const OWN = tar([
  { path: 'root/hello/hello.c', content: HELLO }, { path: 'root/hello/Makefile', content: 'obj-m := hello.o\n' },
  { path: 'usr/src/hello-1.0/hello.c', content: HELLO }, { path: 'usr/src/hello-1.0/Makefile', content: 'obj-m := hello.o\n' }, { path: 'usr/src/hello-1.0/dkms.conf', content: DKMS },
  { path: 'usr/bin/awk', type: 'symlink', target: 'gawk' }
])
const BUILD = 'make -C /lib/modules/$(uname -r)/build M=/root/hello modules 2>&1'

t.setTimeout(1_500_000)
const server = await startTestServer(t)
const image = await pushImage(server)

async function pushImage (server: TestServer): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-image-'))
  try {
    const reference = `${new URL(server.url).host}/headers/gcc:latest`
    const layers = [await readFile(await debianArchive(PACKAGES)), OWN]
    await pushLayout(await writeLayout(folder, [{ layers, packing: 'none', config: { Env: ['PATH=/usr/sbin:/usr/bin'], Cmd: ['/bin/bash'] } }]), reference, { username: 'key', password: server.key })
    return await imageReady(server, reference)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function machine (name: string, from = image, more: { skip_kernel_headers?: boolean } = {}): Promise<string> {
  const { id } = await createShell(server, from, 'exec sleep 1000000', { name, size: '384MB', overlay_size: '512MB', ...more })
  await waitFor(server, id, 'Running')
  return id
}

const tests: Record<string, (t: Test) => Promise<void>> = {
  'a module is built out of tree and loaded, and modprobe finds the kernel\'s own': builds,
  'with skip_kernel_headers there is nothing to build with': skips,
  'an image without any of the folders has the modules too': small
}
for (const [name, run] of Object.entries(tests)) await t.test(name, { timeout: 900_000 }, run)

async function builds (t: Test): Promise<void> {
  const id = await machine('builder')
  const release = (await shell(server, id, 'uname -r')).trim()
  t.equal((await shell(server, id, 'readlink -f /lib/modules/$(uname -r)/build')).trim(), `/usr/src/linux-headers-${release}`)
  t.match(await shell(server, id, BUILD), /hello\.ko/)
  t.match(await shell(server, id, 'cd /root/hello && insmod hello.ko && grep hello /proc/modules && dmesg | tail -3 && rmmod hello'), /^hello .*out of the tree/s)
  t.match(await shell(server, id, 'modprobe dummy && grep dummy /proc/modules && rmmod dummy'), /^dummy/)
  t.equal(await shell(server, id, 'ls /usr/src/hello-1.0/dkms.conf && grep -c vdc /proc/mounts || true'), '/usr/src/hello-1.0/dkms.conf\n0\n', 'no file of the image is hidden, and no mount shows')

  t.match(await shell(server, id, 'dkms install hello/1.0 2>&1'), /updates\/dkms/)
  t.match(await shell(server, id, 'modprobe hello && grep hello /proc/modules && modinfo -n hello && rmmod hello'), /^hello .*updates\/dkms\/hello\.ko/s)

  await server.sdk.instances.standby(id, {})
  await server.sdk.instances.restore(id)
  t.match(await shell(server, id, 'echo 3 > /proc/sys/vm/drop_caches; modprobe dummy && grep dummy /proc/modules'), /^dummy/, 'the disk is there after a standby')
  await server.sdk.instances.stop(id)
  await server.sdk.instances.start(id, {})
  await waitFor(server, id, 'Running')
  t.match(await shell(server, id, 'modprobe hello && grep hello /proc/modules'), /^hello/, 'what DKMS has installed stays')
  await server.sdk.instances.delete(id)
}

async function skips (t: Test): Promise<void> {
  const id = await machine('skipper', image, { skip_kernel_headers: true })
  const { stdout, exitCode } = await runCommand(server, id, { command: ['/bin/bash', '-c', BUILD] })
  t.not(exitCode, 0)
  t.match(stdout, /\/lib\/modules\/[^:]*\/build: No such file or directory/)
  t.equal((await shell(server, id, 'ls /sys/block | grep -c vdc || true')).trim(), '0')
  await server.sdk.instances.delete(id)
}

async function small (t: Test): Promise<void> {
  const id = await machine('small', await push(server, await busyboxImage(), 'headers/busybox:latest'))
  t.match(await shell(server, id, 'ls -d /lib/modules/$(uname -r)/build/include/generated && modprobe dummy && grep dummy /proc/modules'), /generated\ndummy/)
  await server.sdk.instances.delete(id)
}
