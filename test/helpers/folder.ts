// A test's own folder.
import type { Test } from 'tap'

/**
 * A folder that is removed after all that `t.teardown` is given has run.
 * tap's own goes before what was given after the first call of `testdir`, and whatever still writes to it then fails the test.
 * @param content names with their texts, or with the contents of folders
 */
export function testFolder (t: Test, content?: Parameters<Test['testdir']>[0]): string {
  // From the first teardown on, all come before what is asked for later.
  t.teardown(() => {})
  return t.testdir(content)
}
