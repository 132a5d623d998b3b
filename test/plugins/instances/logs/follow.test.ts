// A log is read from its tail, through rotations, to its very end, and nothing is left open.
import { appendFile, readdir, rename, rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { follow, type FollowOptions } from '../../../../plugins/instances/logs/follow.ts'
import { Signal } from '../../../../core/jobs/signal.ts'
import { testFolder } from '../../../helpers/folder.ts'

interface Reading { readonly text: () => string, readonly done: Promise<void>, stop (): void, abort (): void, until (wanted: string): Promise<void> }

function read (path: string, options: Partial<FollowOptions> = {}): Reading {
  const wake = new Signal()
  const aborted = new AbortController()
  let goesOn = true
  let text = ''
  let beats = 0
  const listeners = new Set<() => void>()
  const done = (async () => {
    for await (const block of follow({ path, tail: 1000, goesOn: () => goesOn, wake, signal: aborted.signal, heartbeatMs: 60_000, ...options })) {
      text += block.toString()
      if (block.length === 0) beats++
      for (const listener of listeners) listener()
    }
  })()
  return {
    text: () => text + '.'.repeat(beats),
    done,
    stop () {
      goesOn = false
      wake.notify()
    },
    abort () { aborted.abort() },
    async until (wanted) {
      await new Promise<void>((resolve) => {
        const check = (): void => { if (text.includes(wanted)) resolve() }
        listeners.add(check)
        check()
      })
    }
  }
}

const openFiles = async (folder: string): Promise<number> => {
  const { readlink } = await import('node:fs/promises')
  const links = await Promise.all((await readdir('/proc/self/fd')).map(async (fd) => await readlink(`/proc/self/fd/${fd}`).catch(() => '')))
  return links.filter((link) => link.startsWith(folder)).length
}

async function log (t: Test, content: string): Promise<{ folder: string, path: string }> {
  const folder = testFolder(t, { log: content })
  return { folder, path: join(folder, 'log') }
}

t.test('without follow it ends with the file', async (t) => {
  const { path, folder } = await log(t, 'a\nb\nc')
  const reading = read(path, { tail: 2, goesOn: () => false })
  await reading.done
  t.equal(reading.text(), 'b\nc')
  t.equal(await openFiles(folder), 0)
})

t.test('a log that is not there is empty; one that comes later is read', async (t) => {
  const folder = testFolder(t, {})
  const none = read(join(folder, 'log'), { goesOn: () => false })
  await none.done
  t.equal(none.text(), '')
  const later = read(join(folder, 'log'))
  await writeFile(join(folder, 'log'), 'hello\n')
  await later.until('hello')
  later.stop()
  await later.done
})

t.test('what is written while it is followed comes, and all of it before the end', async (t) => {
  const { path, folder } = await log(t, 'a\n')
  const reading = read(path)
  await reading.until('a\n')
  await appendFile(path, 'b\n')
  await reading.until('b\n')
  await appendFile(path, 'last, without newline')
  reading.stop()
  await reading.done
  t.equal(reading.text(), 'a\nb\nlast, without newline')
  t.equal(await openFiles(folder), 0)
})

t.test('a rotation loses and repeats nothing', async (t) => {
  const { path } = await log(t, '1\n')
  const reading = read(path)
  await reading.until('1\n')
  await rename(path, `${path}.1`)
  await writeFile(path, '')
  // The writer goes on in the old file until it is told about the new one.
  await appendFile(`${path}.1`, '2\n')
  await reading.until('2\n')
  await appendFile(`${path}.1`, '3\n')
  await appendFile(path, '4\n')
  await reading.until('4\n')
  reading.stop()
  await reading.done
  t.equal(reading.text(), '1\n2\n3\n4\n')
})

t.test('two rotations between two looks lose nothing', async (t) => {
  const { path } = await log(t, '1\n')
  let first = true
  const wake = new Signal()
  const aborted = new AbortController()
  let text = ''
  for await (const block of follow({ path, tail: 9, goesOn: () => false, wake, signal: aborted.signal, heartbeatMs: 9999 })) {
    text += block.toString()
    if (!first) continue
    first = false
    await rename(path, `${path}.1`)
    await writeFile(path, '2\n')
    await rename(path, `${path}.1`)
    await writeFile(path, '3\n')
  }
  t.equal(text, '1\n2\n3\n')
})

t.test('the tail reaches back into the rotated file', async (t) => {
  const folder = testFolder(t, { 'log.1': '1\n2\n3\n', log: '4\n5\n' })
  for (const [tail, expected] of [[1, '5\n'], [2, '4\n5\n'], [3, '3\n4\n5\n'], [100, '1\n2\n3\n4\n5\n']] as const) {
    const reading = read(join(folder, 'log'), { tail, goesOn: () => false })
    await reading.done
    t.equal(reading.text(), expected, `tail ${tail}`)
  }
})

t.test('a log that was renamed, and whose successor could not be made, is read and followed on into it', async (t) => {
  const folder = testFolder(t, { 'log.1': '1\n2\n' })
  const path = join(folder, 'log')
  const reading = read(path, { tail: 1 })
  await reading.until('2\n')
  await appendFile(`${path}.1`, '3\n')
  await reading.until('3\n')
  await writeFile(path, '4\n')
  await reading.until('4\n')
  reading.stop()
  await reading.done
  t.equal(reading.text(), '2\n3\n4\n')
  t.equal(await openFiles(folder), 0)
})

t.test('a file that is emptied in place begins anew', async (t) => {
  const { path } = await log(t, 'old old old\n')
  const reading = read(path)
  await reading.until('old\n')
  await truncate(path, 0)
  await appendFile(path, 'new\n')
  await reading.until('new\n')
  reading.stop()
  await reading.done
  t.equal(reading.text(), 'old old old\nnew\n')
})

t.test('a link in place of the log is not followed', async (t) => {
  const folder = testFolder(t, { secret: 'root:x\n' })
  await symlink(join(folder, 'secret'), join(folder, 'log'))
  const reading = read(join(folder, 'log'), { goesOn: () => false })
  await reading.done
  t.equal(reading.text(), '')
})

t.test('silence brings heartbeats, an abort ends at once, and nothing stays open', async (t) => {
  const { path, folder } = await log(t, 'a\n')
  const reading = read(path, { heartbeatMs: 30 })
  while (!reading.text().endsWith('..')) await new Promise((resolve) => { setTimeout(resolve, 10) })
  reading.abort()
  await reading.done
  t.equal(await openFiles(folder), 0)
  await rm(path)
})
