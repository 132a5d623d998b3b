// Runs several test files in one process, one after the other: `node shared-process.js SECONDS FILE...`, each for so long at most. Each is a block of the process's results. To a file its block is
// the test that it imports from tap.
import { relative, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Test } from 'tap'
import { takeUndocumentedErrors } from './documented-errors.ts'

/** What test files call on the test that they import. */
const CALLED = ['test', 'setTimeout', 'teardown', 'before', 'after'] as const

const [, seconds, ...files] = process.argv.splice(1)
// The names of the tests' folders begin with the program and all of its arguments, and a path has an end.
process.argv.push('t')
const { default: t } = await import('tap')

let current: Test | undefined
for (const name of CALLED) {
  const own = t[name]
  Object.assign(t, { [name]: (...args: unknown[]): unknown => Reflect.apply(current?.[name] ?? own, current ?? t, args) })
}

for (const file of files) {
  await t.test(relative('.', file), { timeout: Number(seconds) * 1000 }, async (block) => {
    current = block
    await import(pathToFileURL(resolve(file)).href)
  })
  current = undefined
  // Counted as a part of the file before it.
  for (const text of takeUndocumentedErrors()) t.fail(text)
}
