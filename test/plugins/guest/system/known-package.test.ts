// How long an answer of apt is good for.
import { utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { HostCommands } from '../../../../core/contracts/services.ts'
import { knownPackage } from '../../../../plugins/guest/system/known-package.ts'
import { testFolder } from '../../../helpers/folder.ts'

interface Scene { readonly lists: string, readonly cache: string, readonly asked: () => number, ask (name?: string): Promise<unknown> }

function scene (t: Test, during: (folder: string) => Promise<void> = async () => {}): Scene {
  const folder = testFolder(t, { lists: { one: 'a' }, cache: {} })
  let asked = 0
  const commands: HostCommands = {
    async run () {
      await during(folder)
      return { stdout: `Package: linux-image-${++asked}\nVersion: ${asked}\n`, stderr: '' }
    }
  }
  const lists = join(folder, 'lists')
  const cache = join(folder, 'cache')
  return { lists, cache, asked: () => asked, ask: async (name = 'linux-image-x') => await knownPackage(commands, name, cache, undefined, [lists, join(folder, 'status')]) }
}

t.test('apt is asked once for as long as its lists stay as they are', async (t) => {
  const { lists, asked, ask } = scene(t)
  t.same([await ask(), await ask()], [{ name: 'linux-image-1', version: '1' }, { name: 'linux-image-1', version: '1' }])
  t.same([await ask('linux-image-y'), await ask('linux-image-y')], [{ name: 'linux-image-2', version: '2' }, { name: 'linux-image-2', version: '2' }], 'for another package it is asked')
  t.same(await ask(), { name: 'linux-image-1', version: '1' }, 'and the answer about the first one stays')
  t.same(await ask('__proto__'), { name: 'linux-image-3', version: '3' }, 'under any name')
  await utimes(join(lists, 'one'), 1, 1)
  t.same(await ask('linux-image-y'), { name: 'linux-image-4', version: '4' }, 'and again when a list is another')
  await writeFile(join(lists, 'two'), '')
  await ask('linux-image-y')
  t.equal(asked(), 5, 'and when there is one more')
})

t.test('what it said while its lists changed is not kept', async (t) => {
  let count = 0
  const { asked, ask } = scene(t, async (folder) => { await writeFile(join(folder, 'lists/one'), 'b'.repeat(++count)) })
  await ask()
  await ask()
  t.equal(asked(), 2)
})

t.test('a note that is damaged is not believed', async (t) => {
  const { cache, asked, ask } = scene(t)
  await ask()
  for (const text of ['', '{', '{"sources":1}', '{"sources":"","packages":{"linux-image-x":1}}']) {
    await writeFile(join(cache, '.known-packages.json'), text)
    await ask()
  }
  t.equal(asked(), 5)
})
