// A program in place of a hostile VMM: `swap-forever.js NAME TARGET` puts in turn a file and a link to TARGET in the place of NAME, as fast as it can.
import { renameSync, symlinkSync, writeFileSync } from 'node:fs'

const [, , name = '', target = ''] = process.argv

for (;;) {
  writeFileSync(`${name}.file`, 'of this VM')
  renameSync(`${name}.file`, name)
  symlinkSync(target, `${name}.link`)
  renameSync(`${name}.link`, name)
}
