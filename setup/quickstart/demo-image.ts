// Builds a container image from the host's own busybox and pushes it to a registry, without downloading anything.
import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { HostCommands } from '../../core/contracts/services.ts'
import { placeProgram } from './place-program.ts'

const busybox = '/bin/busybox'

/** Builds the image in `folder` and pushes it to `host`; `key` is the registry's password. Resolves to the reference to boot. */
export async function pushDemoImage (commands: HostCommands, folder: string, host: string, key: string): Promise<string> {
  const layout = join(folder, 'demo-image')
  const bundle = join(folder, 'demo-bundle')
  const image = `${layout}:latest`
  const rootless = process.getuid?.() === 0 ? [] : ['--rootless']
  await commands.run('umoci', ['init', '--layout', layout])
  await commands.run('umoci', ['new', '--image', image])
  await commands.run('umoci', ['unpack', ...rootless, '--image', image, bundle])
  await fill(commands, join(bundle, 'rootfs'), (await commands.run(busybox, ['--list'])).stdout.trim().split('\n'))
  await commands.run('umoci', ['repack', '--image', image, bundle])
  await commands.run('umoci', ['config', '--image', image, '--config.env', 'PATH=/bin', '--config.cmd', '/bin/sh'])
  const reference = `${host}/demo/busybox:latest`
  // Passed in a file, since every user of the host can read arguments.
  const authfile = join(folder, 'registry-auth.json')
  const auth = Buffer.from(`berth:${key}`).toString('base64')
  await writeFile(authfile, JSON.stringify({ auths: { [host]: { auth } } }), { mode: 0o600 })
  await commands.run('skopeo', ['copy', '--quiet', '--dest-tls-verify=false', '--authfile', authfile, `oci:${image}`, `docker://${reference}`])
  return reference
}

async function fill (commands: HostCommands, root: string, applets: readonly string[]): Promise<void> {
  for (const name of ['bin', 'etc', 'tmp', 'proc', 'sys', 'dev']) await mkdir(join(root, name), { recursive: true })
  await chmod(join(root, 'tmp'), 0o1777)
  await placeProgram(commands, busybox, root, 'bin/busybox')
  for (const applet of applets) if (applet !== 'busybox') await symlink('busybox', join(root, 'bin', applet))
  await writeFile(join(root, 'etc/passwd'), 'root:x:0:0:root:/:/bin/sh\n')
  await writeFile(join(root, 'etc/group'), 'root:x:0:\n')
}
