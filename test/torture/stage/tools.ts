// Puts a wrapper before each host tool, in the first folder of the PATH that the server gives its commands. The folder is covered in this mount namespace alone.
import { chmod, cp, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createHostCommands } from '../../../core/process/run.ts'

/** Tools that the server runs. `setpriv` starts VMMs and the proxy. */
export const TOOLS = ['ip', 'nft', 'tc', 'bridge', 'conntrack', 'mkfs.ext4', 'mkfs.erofs', 'umoci', 'skopeo', 'e2fsck', 'zstd', 'lz4', 'tar', 'cp', 'setpriv', 'qemu-system-x86_64', 'flock'] as const

const FIRST_FOLDER = '/usr/local/sbin'
const PATH = '/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
const SLOW_SECONDS = 2

/** Gives the folder of orders: a file with the name of a tool says `fail` or `slow`; without it the tool is as it is. */
export async function wrapTools (folder: string): Promise<string> {
  const [wrappers, orders] = [join(folder, 'tools'), join(folder, 'orders')]
  await cp(FIRST_FOLDER, wrappers, { recursive: true })
  await mkdir(orders)
  for (const path of [wrappers, orders]) await chmod(path, 0o755)
  for (const tool of TOOLS) {
    const file = join(wrappers, tool)
    await writeFile(file, wrapper(tool, join(orders, tool)))
    await chmod(file, 0o755)
  }
  await createHostCommands().run('mount', ['--bind', wrappers, FIRST_FOLDER])
  return orders
}

function wrapper (tool: string, order: string): string {
  return `#!/bin/sh
word=
[ -e '${order}' ] && read -r word < '${order}' 2>/dev/null
case $word in
  fail) echo '${tool}: an error that the torture has made' >&2; exit 1;;
  slow) sleep ${SLOW_SECONDS};;
esac
for folder in $(echo '${PATH}' | tr : ' '); do
  [ -x "$folder/${tool}" ] && exec "$folder/${tool}" "$@"
done
echo '${tool}: not found' >&2
exit 127
`
}
