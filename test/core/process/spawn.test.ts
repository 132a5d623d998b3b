// Processes that outlive the server: what they are given, how they are told apart, and how their end is heard of.
import { open as openFile, readFile, readdir, readlink, symlink } from 'node:fs/promises'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { argumentsOf, environmentOf, folderOf, processesIn, uidOf } from '../../../core/process/find.ts'
import { endProcess } from '../../../core/process/end.ts'
import { isAlive, readIdentity } from '../../../core/process/identity.ts'
import { spawnerIdentity } from '../../../core/process/spawner/spawner.ts'
import { spawnBackground, type Background, type BackgroundCommand } from '../../../core/process/spawn.ts'
import { testFolder } from '../../helpers/folder.ts'

async function start (t: Test, command: Omit<BackgroundCommand, 'log'> & { log?: string }): Promise<{ background: Background, log: string }> {
  const log = command.log ?? join(testFolder(t, {}), 'its.log')
  const background = await spawnBackground({ log, ...command })
  t.teardown(async () => { if (background.identity !== undefined) await endProcess(background.identity) })
  return { background, log }
}

// A process that outlives this one keeps no event loop going.
const held = setInterval(() => {}, 60_000)
t.teardown(() => { clearInterval(held) })

t.test('it works in its folder with its own variables, a small environment, and nothing open but its log', async (t) => {
  const folder = testFolder(t, { work: {}, other: '' })
  const other = { path: join(folder, 'other'), handle: await openFile(join(folder, 'other'), 'r') }
  t.teardown(async () => { await other.handle.close() })
  const { background: { identity }, log } = await start(t, { file: 'sleep', args: ['60'], folder: join(folder, 'work'), environment: { MINE: 'a=b' }, log: join(folder, 'its.log') })
  const pid = identity?.pid ?? 0
  while ((await argumentsOf(pid))[0] !== 'sleep') await new Promise(setImmediate)
  t.same(await argumentsOf(pid), ['sleep', '60'])
  t.same([...(await environmentOf(pid)).keys()].filter((name) => name !== '').sort(), ['LANG', 'MINE', 'PATH'])
  t.equal((await environmentOf(pid)).get('MINE'), 'a=b')
  t.equal(await folderOf(pid), join(folder, 'work'))
  t.equal(await uidOf(pid), process.getuid?.())
  t.same(await processesIn(join(folder, 'work')), [pid])
  t.same(await processesIn(folder), [])
  t.same(await processesIn(join(folder, 'none')), [])
  const open = await Promise.all((await readdir(`/proc/${pid}/fd`)).map(async (fd) => await readlink(`/proc/${pid}/fd/${fd}`)))
  t.same(open.slice(0, 3), ['/dev/null', log, log])
  t.notOk(open.includes(other.path), 'what this process has open is not')
  const [, , , , , session] = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(' ')
  t.equal(Number(session), pid, 'in a session of its own, so that what ends this one\'s does not end it')
})

t.test('how it ended and what it said last is known', async (t) => {
  const folder = testFolder(t, { 'its.log': 'of another one\n' })
  const { background } = await start(t, { file: 'sh', args: ['-c', 'echo one; echo two >&2; exit 3'], folder, log: join(folder, 'its.log') })
  t.equal(await background.ended, 'exit code 3')
  t.equal(background.end(), 'exit code 3')
  t.equal(await background.lastWords(), 'one\ntwo')
  const { background: killed } = await start(t, { file: 'sh', args: ['-c', 'kill -9 $$'], folder, log: join(folder, 'its.log') })
  t.equal(await killed.ended, 'SIGKILL')
  const { background: none } = await start(t, { file: 'there-is-no-such-program', args: [], folder, log: join(folder, 'its.log') })
  t.equal(none.identity, undefined)
  t.match(await none.ended, /ENOENT/)
})

t.test('a link in the place of its log is not followed', async (t) => {
  const folder = testFolder(t, { other: 'x' })
  await symlink(join(folder, 'other'), join(folder, 'its.log'))
  await t.rejects(spawnBackground({ file: 'true', args: [], folder, log: join(folder, 'its.log') }), { code: 'ELOOP' })
  t.equal(await readFile(join(folder, 'other'), 'utf8'), 'x')
})

t.test('files are open for it that only this user may read, and what this process hands over is closed here', async (t) => {
  const folder = testFolder(t, { one: 'first', other: 'second' })
  const files = ['one', 'other'].map((name) => join(folder, name))
  const { background: { ended }, log } = await start(t, { file: 'sh', args: ['-c', 'cat <&3; cat <&4; ls /proc/self/fd | tr "\\n" " "'], folder, files, log: join(folder, 'its.log') })
  t.equal(await ended, 'exit code 0')
  t.equal(await readFile(log, 'utf8'), 'firstsecond0 1 2 3 4 5 ', 'the last is the folder that ls reads')
  const { background: none } = await start(t, { file: 'true', args: [], folder, files: [join(folder, 'none')], log: join(folder, 'its.log') })
  t.match(await none.ended, /ENOENT/)
  let closed = 0
  const handle = await openFile(join(folder, 'one'))
  const { background: own } = await start(t, { file: 'cat', args: ['/proc/self/fd/3'], folder, log: join(folder, 'its.log'), openExtra: async () => ({ descriptors: [handle.fd], close: () => { closed++ } }) })
  t.equal(await own.ended, 'exit code 0')
  t.equal(closed, 1)
  await handle.close()
})

t.test('a program that starts it, and has nothing else to do, waits until it runs, and then ends', async (t) => {
  const folder = testFolder(t, {})
  const text = `import { spawnBackground } from ${JSON.stringify(new URL('../../../core/process/spawn.js', import.meta.url).href)}
    const { identity, ended } = await spawnBackground({ file: 'sleep', args: ['1000'], folder: '/', log: ${JSON.stringify(join(folder, 'its.log'))} })
    process.stdout.write(String(identity?.pid))
    await ended`
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', text], { encoding: 'utf8', timeout: 60_000 })
  const identity = readIdentity(Number(stdout))
  t.ok(identity, stdout)
  if (identity !== undefined) await endProcess(identity)
})

t.test('a program that starts what ends at once, and has nothing else to do, learns how that ended', async (t) => {
  const folder = testFolder(t, {})
  // Whether it is over before its identity can be read is chance: of 300, some are.
  const text = `import { spawnBackground } from ${JSON.stringify(new URL('../../../core/process/spawn.js', import.meta.url).href)}
    let over = 0
    for (let count = 0; count < 300; count++) {
      const { identity, ended } = await spawnBackground({ file: 'true', args: [], folder: '/', log: ${JSON.stringify(join(folder, 'its.log'))} })
      if (identity === undefined && await ended === 'exit code 0') over++
    }
    process.stdout.write(String(over))`
  const { stdout, status } = spawnSync(process.execPath, ['--input-type=module', '--eval', text], { encoding: 'utf8', timeout: 60_000 })
  t.equal(status, 0)
  t.ok(Number(stdout) > 0, stdout)
})

t.test('it goes on when the process that started it is killed, and its end is still heard of', async (t) => {
  const { background: { identity, ended } } = await start(t, { file: 'sleep', args: ['1000'], folder: testFolder(t, {}) })
  process.kill(spawnerIdentity()?.pid ?? 0, 'SIGKILL')
  await delay(500)
  t.ok(identity !== undefined && isAlive(identity), 'it runs')
  if (identity !== undefined) await endProcess(identity)
  t.equal(await ended, 'its exit code is not known')
})
