// Which blocks of a file others have as well.
import { join } from 'node:path'
import t from 'tap'
import { parseShared, sharedBytes } from '../../../core/fs/shared-blocks.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { testFolder } from '../../helpers/folder.ts'

/** As e2fsprogs 1.47 prints it of a copy by reflink on btrfs, a part of which was written since. */
const PRINTED = `Filesystem type is: 9123683e
File size of mnt/b is 10485760 (2560 blocks of 4096 bytes)
 ext:     logical_offset:        physical_offset: length:   expected: flags:
   0:        0..     255:       3328..      3583:    256:             shared
   1:      256..     511:       4352..      4607:    256:       3584:
   2:      512..    1023:       3840..      4351:    512:       4608: last,shared
mnt/b: 3 extents found
`

await t.test('extents that are shared are added up', async (t) => {
  t.equal(parseShared(PRINTED), 768 * 4096)
  t.equal(parseShared('File size of h is 3145728 (768 blocks of 4096 bytes)\nh: 0 extents found\n'), 0)
  t.equal(parseShared('File size of 9: shared is 1 (1 block of 1024 bytes)\n 9: shared: 0 extents found\n'), 0, 'a name is no extent')
  t.equal(parseShared('something else'), undefined)
})

await t.test('where the file system shares none nobody is asked', async (t) => {
  const folder = testFolder(t, { file: 'x' })
  t.equal(await sharedBytes(createHostCommands(), join(folder, 'file')), 0)
  await t.rejects(sharedBytes(createHostCommands(), join(folder, 'none')), { code: 'ENOENT' })
})
