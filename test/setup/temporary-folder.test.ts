// temporary-folder.sh where /tmp is of no use, in a mount namespace of its own.
import { spawnSync } from 'node:child_process'
import { copyFile, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { packageRoot } from '../../core/package-root.ts'
import { testFolder } from '../helpers/folder.ts'
import { withoutMounts } from '../helpers/rights.ts'

t.test('a folder in the checkout takes the place of /tmp where that is read-only or small', { skip: withoutMounts }, async (t) => {
  const root = testFolder(t, {})
  await mkdir(join(root, 'setup'))
  await copyFile(join(packageRoot, 'setup/temporary-folder.sh'), join(root, 'setup/temporary-folder.sh'))
  const script = 'mount -t tmpfs tmpfs /mnt && mkdir /mnt/c && mount --bind "$0" /mnt/c && mount -t tmpfs -o "$1" tmpfs /tmp && exec sh -c \'. "$(dirname "$0")/temporary-folder.sh"; echo "${TMPDIR:-none}"\' /mnt/c/setup/any.sh'
  const folderWith = (options: string): string => {
    const { TMPDIR: _, ...env } = process.env
    const { stdout, stderr } = spawnSync('unshare', ['--mount', 'sh', '-c', script, root, options], { encoding: 'utf8', env })
    return stdout.trim() + stderr
  }
  t.equal(folderWith('ro'), '/mnt/c/.cache/tmp')
  t.equal(folderWith('size=16m'), '/mnt/c/.cache/tmp')
  t.equal(folderWith('size=4g'), 'none')
})
