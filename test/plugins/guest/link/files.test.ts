// Files into a guest and out of it, against a guest that the test plays.
import t from 'tap'
import { field, frame, readField, refusal, ScriptedGuest, u32 } from '../helpers/scripted-guest.ts'

t.test('stat gives facts, also for what is not there', async (t) => {
  const guest = new ScriptedGuest()
  const there = guest.link.stat('/a', { follow: true })
  guest.send(frame(7, await guest.opened('stat'), 0, Buffer.concat([field(32, 1), field(26, 'symlink'), field(21, 0o777), field(25, 3), field(27, 'b'), field(22, 1), field(23, 2), field(24, 99)])))
  t.same(await there, { exists: true, type: 'symlink', mode: 0o777, sizeBytes: 3, linkTarget: 'b', uid: 1, gid: 2, mtime: 99 })
  const missing = guest.link.stat('/b', { follow: true })
  await guest.seen((one) => one.channel === 2)
  guest.send(frame(7, 2, 0, field(32, 0)))
  t.match(await missing, { exists: false })
  guest.link.close()
})

t.test('put sends the content and ends it; a refusal reaches the writer', async (t) => {
  const guest = new ScriptedGuest()
  const upload = guest.link.put({ path: '/f', type: 'file', mode: 0o640, uid: 1, gid: 2, mtime: 3, basename: 'n' })
  upload.content.end('hello')
  await guest.seen((one) => one.type === 4)
  guest.send(frame(7, 1, 0, field(33, 5)))
  t.same(await upload.result, { bytes: 5 })
  const refused = guest.link.put({ path: '/g', type: 'file', mode: 0o640 })
  await guest.seen((one) => one.type === 2 && one.channel === 2)
  guest.send(frame(7, 2, 0, refusal('no space left', 28)))
  await t.rejects(refused.result, { code: 'guest_refused', errno: 28 })
  t.match(refused.content.errored, { code: 'guest_refused' })
  guest.link.close()
})

t.test('an upload that is given up is cancelled', async (t) => {
  const guest = new ScriptedGuest()
  const upload = guest.link.put({ path: '/f', type: 'file', mode: 0o640 })
  upload.content.write('half')
  upload.content.destroy(new Error('the client went away'))
  const control = await guest.seen((one) => one.type === 6)
  t.equal(readField(control.payload, 1)?.toString(), 'cancel')
  t.notOk(guest.frames.some((one) => one.type === 4), 'and never ended as if it were whole')
  guest.link.close()
})

t.test('a folder is put without content', async (t) => {
  const guest = new ScriptedGuest()
  const upload = guest.link.put({ path: '/d', type: 'dir', mode: 0o755 })
  guest.send(frame(7, await guest.opened('put'), 0))
  t.same(await upload.result, { bytes: 0 })
  guest.link.close()
})

function entry (fields: Buffer[], content = Buffer.alloc(0)): Buffer {
  const payload = Buffer.concat(fields)
  return Buffer.concat([u32(payload.length), payload, content])
}

t.test('get gives entries with their content, cut into frames anyhow', async (t) => {
  const big = Buffer.alloc(150_000, 7)
  const bytes = Buffer.concat([
    entry([field(20, ''), field(26, 'dir'), field(21, 0o755)]),
    entry([field(20, 'a'), field(26, 'file'), field(21, 0o644), field(25, big.length)], big),
    entry([field(20, 'skipped'), field(26, 'file'), field(25, 5)], Buffer.from('12345')),
    entry([field(20, 'empty'), field(26, 'file'), field(25, 0)]),
    entry([field(20, 'bad'), field(30, 'permission denied'), field(31, 13)]),
    entry([field(20, 'link'), field(26, 'symlink'), field(27, 'a')])
  ])
  for (const size of [1000, 4999, 65_536]) {
    const guest = new ScriptedGuest()
    const seen: unknown[] = []
    const reading = (async () => {
      for await (const { content, ...facts } of guest.link.get('/x', { follow: true })) {
        let length = 0
        if (facts.path !== 'skipped') for await (const piece of content ?? []) length += piece.length
        seen.push([facts.path, facts.type ?? facts.error, length])
      }
    })()
    const channel = await guest.opened('get')
    for (let at = 0; at < bytes.length; at += size) guest.send(frame(3, channel, 1, bytes.subarray(at, at + size)))
    guest.send(frame(4, channel, 1), frame(7, channel, 0))
    await reading
    t.same(seen, [['', 'dir', 0], ['a', 'file', 150_000], ['skipped', 'file', 0], ['empty', 'file', 0], ['bad', 'permission denied', 0], ['link', 'symlink', 0]])
    guest.link.close()
  }
})

t.test('get of what is not there, and a get that its reader leaves', async (t) => {
  const guest = new ScriptedGuest()
  const missing = guest.link.get('/nope', { follow: true })[Symbol.asyncIterator]().next()
  guest.send(frame(7, await guest.opened('get'), 0, refusal('no such file or directory', 2)))
  await t.rejects(missing, { code: 'guest_refused', errno: 2 })
  const many = guest.link.get('/many', { follow: true })[Symbol.asyncIterator]()
  const leaving = (async () => {
    const first = await many.next()
    await many.return?.()
    return first.done === true ? undefined : first.value.path
  })()
  await guest.seen((one) => one.type === 2 && one.channel === 2)
  guest.send(frame(3, 2, 1, entry([field(20, 'first'), field(26, 'dir')])))
  t.equal(await leaving, 'first')
  t.equal(readField((await guest.seen((one) => one.type === 6)).payload, 1)?.toString(), 'cancel')
  guest.link.close()
})

t.test('a get whose guest fails midway ends with the guest\'s reason', async (t) => {
  const guest = new ScriptedGuest()
  const reading = (async () => {
    for await (const { content } of guest.link.get('/x', { follow: true })) for await (const piece of content ?? []) t.ok(piece.length > 0)
  })()
  const channel = await guest.opened('get')
  guest.send(frame(3, channel, 1, entry([field(20, 'a'), field(26, 'file'), field(25, 100)], Buffer.from('only this'))), frame(7, channel, 0, refusal('input/output error', 5)))
  await t.rejects(reading, { code: 'guest_refused', errno: 5 })
  guest.link.close()
})

t.test('a file too large to count fails by itself in a get, and a command beside it goes on', async (t) => {
  const guest = new ScriptedGuest()
  const session = guest.link.exec({ argv: ['x'] })
  const command = await guest.opened('exec')
  const seen: unknown[] = []
  const reading = (async () => { for await (const { path, type, error } of guest.link.get('/dev/shm', { follow: true })) seen.push([path, type ?? error]) })()
  const channel = await guest.opened('get')
  // As a guest of an older system has it, which goes on with the content: it has no end.
  guest.send(frame(3, channel, 1, Buffer.concat([entry([field(20, ''), field(26, 'dir')]), entry([field(20, 'x'), field(26, 'file'), field(25, 7n * 2n ** 60n)], Buffer.alloc(1000))])))
  await t.rejects(reading, { code: 'guest_refused', errno: 27 })
  t.same(seen, [['', 'dir'], ['x', 'File too large']])
  const control = await guest.seen((one) => one.type === 6)
  t.same([control.channel, readField(control.payload, 1)?.toString()], [channel, 'cancel'])
  guest.send(frame(7, command, 0, field(12, 3)))
  t.same(await session.result, { exitCode: 3, signal: 0 })
  guest.link.close()
})

t.test('a stat that is given up is cancelled, and settles without the guest\'s answer', async (t) => {
  const guest = new ScriptedGuest()
  const gone = new AbortController()
  const facts = guest.link.stat('/mnt/x', { follow: true, signal: gone.signal })
  const channel = await guest.opened('stat')
  gone.abort(new Error('the client went away'))
  await t.rejects(facts, { message: 'the client went away' })
  const control = await guest.seen((one) => one.type === 6)
  t.same([control.channel, readField(control.payload, 1)?.toString()], [channel, 'cancel'])
  guest.send(frame(7, channel, 0, refusal('cancelled', 125)))
  await t.rejects(guest.link.stat('/mnt/x', { follow: true, signal: gone.signal }), { message: 'the client went away' })
  t.equal(guest.frames.filter((one) => one.type === 2).length, 1, 'one that is given up before it began is not asked for')
  guest.link.close()
})

t.test('a get that is given up is cancelled, wherever it waits for the guest', async (t) => {
  const words: Record<string, (channel: number) => Buffer[]> = {
    'for its first entry': () => [],
    'for content': (channel) => [frame(3, channel, 1, entry([field(20, 'a'), field(26, 'file'), field(25, 10)], Buffer.from('half')))],
    'for its result': (channel) => [frame(3, channel, 1, entry([field(20, 'a'), field(26, 'dir')])), frame(4, channel, 1)],
    'for the reason of a cut': (channel) => [frame(3, channel, 1, u32(100)), frame(4, channel, 1)]
  }
  for (const [name, said] of Object.entries(words)) {
    const guest = new ScriptedGuest()
    const gone = new AbortController()
    const reading = (async () => {
      for await (const { content } of guest.link.get('/mnt', { follow: true, signal: gone.signal })) for await (const piece of content ?? []) t.ok(piece.length > 0)
    })()
    const channel = await guest.opened('get')
    guest.send(...said(channel))
    await new Promise((resolve) => setTimeout(resolve, 20))
    gone.abort(new Error('the client went away'))
    await t.rejects(reading, { message: 'the client went away' }, name)
    t.equal(readField((await guest.seen((one) => one.type === 6)).payload, 1)?.toString(), 'cancel')
    guest.link.close()
  }
})
