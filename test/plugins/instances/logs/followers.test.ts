// Many who follow one log: it is read once for all of them, and each gets every byte once, whenever he comes and however slow he is.
import { appendFile, readdir, readlink, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { follow } from '../../../../plugins/instances/logs/follow.ts'
import { Signal } from '../../../../core/jobs/signal.ts'
import { eventually } from '../../../helpers/eventually.ts'
import { testFolder } from '../../../helpers/folder.ts'

interface Reading { readonly text: string, readonly done: Promise<void>, stop (): void }

/** @param before waited for before each block but the first is taken */
function read (path: string, tail: number, before: () => Promise<void> = async () => {}): Reading {
  const wake = new Signal()
  let goesOn = true
  let text = ''
  return {
    get text () { return text },
    done: (async () => {
      for await (const block of follow({ path, tail, goesOn: () => goesOn, wake, signal: new AbortController().signal, heartbeatMs: 60_000 })) {
        text += block.toString()
        await before()
      }
    })(),
    stop () {
      goesOn = false
      wake.notify()
    }
  }
}

async function openFiles (folder: string): Promise<number> {
  const links = await Promise.all((await readdir('/proc/self/fd')).map(async (fd) => await readlink(`/proc/self/fd/${fd}`).catch(() => '')))
  return links.filter((link) => link.startsWith(folder)).length
}

t.test('fifty have one open file, and each has each line once', async (t) => {
  const folder = testFolder(t, { log: 'first\n' })
  const path = join(folder, 'log')
  const readings = Array.from({ length: 50 }, () => read(path, 1))
  await eventually('all have it', () => readings.every(({ text }) => text === 'first\n'))
  await eventually('1 open', async () => await openFiles(folder) === 1)
  await appendFile(path, 'second\n')
  await eventually('all have it', () => readings.every(({ text }) => text === 'first\nsecond\n'))
  // One leaves, and be it the one who came first.
  readings[0]?.stop()
  await readings[0]?.done
  await appendFile(path, 'third\n')
  for (const { stop } of readings) stop()
  await Promise.all(readings.map(async ({ done }) => { await done }))
  t.ok(readings.slice(1).every(({ text }) => text === 'first\nsecond\nthird\n'))
  await eventually('0 open', async () => await openFiles(folder) === 0)
})

t.test('while a line goes to a thousand, others have their turns', async (t) => {
  const folder = testFolder(t, { log: '' })
  const path = join(folder, 'log')
  const readings = Array.from({ length: 1000 }, () => read(path, 0))
  await eventually('1 open', async () => await openFiles(folder) === 1)
  await appendFile(path, 'line\n')
  const served = new Set<number>()
  while (!served.has(1000)) {
    await turn()
    served.add(readings.filter(({ text }) => text !== '').length)
  }
  t.ok([...served].filter((count) => count > 0 && count < 1000).length >= 5, `seen by ${[...served].join(', ')} followers`)
  for (const { stop } of readings) stop()
  await Promise.all(readings.map(async ({ done }) => { await done }))
})

t.test('who comes while it is written and rotated misses nothing and gets nothing twice', async (t) => {
  const folder = testFolder(t, { log: '' })
  const path = join(folder, 'log')
  const readings: Reading[] = []
  let written = ''
  for (let line = 0; line < 300; line++) {
    if (line === 150) {
      await rename(path, `${path}.1`)
      await writeFile(path, '')
    }
    const text = `line ${line} ${'x'.repeat(line % 97)}\n`
    await appendFile(path, text)
    written += text
    if (line % 5 === 0) readings.push(read(path, 1_000_000))
    if (line % 3 === 0) await delay(1)
  }
  await eventually('all have it', () => readings.every(({ text }) => text.endsWith(`line 299 ${'x'.repeat(299 % 97)}\n`)))
  for (const { stop } of readings) stop()
  await Promise.all(readings.map(async ({ done }) => { await done }))
  t.ok(readings.every(({ text }) => text === written), 'all of it, in order')
  await eventually('0 open', async () => await openFiles(folder) === 0)
})

t.test('one who is slow keeps nobody waiting, holds little, and has all of it in the end, also what was rotated away', async (t) => {
  const folder = testFolder(t, { log: 'first\n' })
  const path = join(folder, 'log')
  let free = (): void => {}
  const freed = new Promise<void>((resolve) => { free = resolve })
  const slow = read(path, 1, async () => { await freed })
  const quick = read(path, 1)
  await eventually('it is read', () => quick.text === 'first\n')
  await eventually('it is read', () => slow.text === 'first\n')
  let written = 'first\n'
  for (let megabyte = 0; megabyte < 6; megabyte++) {
    const text = `${String(megabyte).repeat(2 ** 20 - 1)}\n`
    await appendFile(path, text)
    written += text
    await eventually('it is read', () => quick.text.length === written.length)
    if (megabyte !== 3) continue
    await rename(path, `${path}.1`)
    await writeFile(path, '')
  }
  t.equal(slow.text, 'first\n')
  free()
  await eventually('it is read', () => slow.text.length === written.length)
  slow.stop()
  quick.stop()
  await Promise.all([slow.done, quick.done])
  t.ok(slow.text === written && quick.text === written)
  await eventually('0 open', async () => await openFiles(folder) === 0)
})
