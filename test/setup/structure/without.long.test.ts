// The folder of each plugin that others can do without is deleted, one at a time: the rest compiles, and tests of it that need no VM pass. An eighth of the plugins for a commit: each
// takes half a minute of processor time. Imports of all of them are looked at by ../structure.test.ts.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { packageRoot } from '../../../core/package-root.ts'
import { REMOVABLE } from '../../../setup/structure/deleted.ts'
import { without } from '../../../setup/structure/without.ts'
import { shareOfCommit } from '../../../setup/test/share-of-commit.ts'
import { TESTS_WITHOUT } from './tests-without.ts'

const execute = promisify(execFile)
t.setTimeout(1_200_000)

for (const plugin of shareOfCommit(REMOVABLE, 8)) {
  t.test(`without plugins/${plugin} the rest compiles, and its tests pass`, async (t) => {
    const { folder, compile, close } = await without(packageRoot, plugin)
    t.teardown(close)
    t.strictSame(await compile({ emit: true }), [])
    for (const name of TESTS_WITHOUT) {
      const { failed, text } = await execute(process.execPath, [join(folder, `dist/test/${name}.test.js`)], { cwd: folder, maxBuffer: 2 ** 26 })
        .then(({ stdout }) => ({ failed: false, text: stdout }), ({ stdout, stderr }: { stdout: string, stderr: string }) => ({ failed: true, text: stdout + stderr }))
      if (failed) t.fail(`${name}: ${text.split('\n').filter((line) => /^\s*not ok/.test(line)).join('; ').slice(0, 1000)}`)
      else t.match(text, /# \{ total: \d+, pass: \d+/, name)
    }
  })
}
