// berth-vm-output: what VMM and guest print is in their files, acknowledged, also when these move; and it ends with the VMM.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { outputArgs, outputEnded, OUTPUT_PROGRAM, rotateOutput } from '../../../../core/library/vmm/output.ts'
import { runFolder, type RunFolder } from '../../../../core/library/vmm/run-folder.ts'
import { eventually } from '../../../helpers/eventually.ts'

await t.test('lines reach their files, each piece is acknowledged, a moved file takes what follows, and all ends with the VMM', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'berth-output-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  for (const [name, content] of [['console', ''], ['output', 'before\n'], ['report', '']] as const) await writeFile(join(directory, name), content)
  const folder = runFolder(directory, 'run', 'none')
  await folder.make(undefined)
  for (const name of ['console', 'output', 'report']) await symlink(join(directory, name), join(folder.path, name))
  const child = spawn(OUTPUT_PROGRAM, [...outputArgs('v'), 'sh', '-c', 'echo the VMM; exec sleep 600'], { cwd: folder.path, stdio: 'ignore' })
  t.teardown(() => child.kill('SIGKILL'))
  const exited = once(child, 'exit')
  const text = async (name: string): Promise<string> => await readFile(join(directory, name), 'utf8')
  await eventually('the VMM has printed', async () => await text('console') === 'the VMM\n')
  const guest = connect(join(folder.path, 'v_1025'))
  await say(guest, 'one\n', 4n)
  await writeFile(join(directory, 'moved'), '')
  await rotateOutput(folder, 'output', join(directory, 'moved'), child.pid ?? 0)
  await say(guest, 'two\n', 8n)
  t.equal(await text('output'), 'before\none\n', 'the old file is whole')
  t.equal(await text('moved'), 'two\n')
  const report = connect(join(folder.path, 'v_1026'))
  await say(report, 'end\n', 4n)
  t.equal(await text('report'), 'end\n')
  await t.rejects(rotateOutput(folder, 'output', join(directory, 'none/at all'), child.pid ?? 0), { code: 'ENOENT' })
  guest.write('last\n')
  guest.end()
  await once(guest, 'close')
  t.equal(await text('moved'), 'two\nlast\n')
  report.destroy()
  child.kill('SIGKILL')
  await exited
  await outputEnded(folder)
  await t.rejects(rotateOutput(folder, 'output', join(directory, 'moved'), process.pid), { code: 'vm_rotate_failed' })
})

await t.test('a server that misses its time to ask for a moved file, as on a busy host, asks again', async (t) => {
  const { directory, folder } = await withFiles(t)
  let asked = 0
  // What the program does with one that has not asked in time.
  const program = createServer((connection) => {
    connection.on('error', () => {})
    if (++asked < 3) connection.destroy()
    else connection.once('data', () => connection.end(Buffer.of(0)))
  })
  program.listen(join(folder.path, 'output.sock'))
  await once(program, 'listening')
  t.teardown(() => program.close())
  await writeFile(join(directory, 'moved'), '')
  await rotateOutput(folder, 'output', join(directory, 'moved'), process.pid)
  t.equal(asked, 3)
})

await t.test('idle strangers at a port of the guest keep nobody out: the newest connections are served, and those of another file go on', async (t) => {
  const { directory, folder } = await withFiles(t)
  const child = spawn(OUTPUT_PROGRAM, [...outputArgs('v'), 'sh', '-c', 'echo the VMM; exec sleep 600'], { cwd: folder.path, stdio: 'ignore' })
  const exited = once(child, 'exit')
  t.teardown(() => child.kill('SIGKILL'))
  await eventually('the VMM has printed', async () => await readFile(join(directory, 'console'), 'utf8') === 'the VMM\n')
  const guest = connect(join(folder.path, 'v_1025'))
  await say(guest, 'one\n', 4n)
  const strangers: Socket[] = []
  for (let n = 0; n < 9; n++) {
    strangers.push(await call(join(folder.path, 'v_1026')))
  }
  const report = await call(join(folder.path, 'v_1026'))
  await say(report, 'end\n', 4n)
  t.equal(await readFile(join(directory, 'report'), 'utf8'), 'end\n')
  await say(guest, 'two\n', 8n)
  t.equal(await readFile(join(directory, 'output'), 'utf8'), 'one\ntwo\n')
  for (const socket of [report, guest, ...strangers]) socket.destroy()
  child.kill('SIGKILL')
  await exited
  await outputEnded(folder)
})

await t.test('a process that writes the files and cannot run for a while is waited for, and what it had not written is there then', async (t) => {
  const { directory, folder } = await withFiles(t)
  const child = spawn(OUTPUT_PROGRAM, [...outputArgs('v'), 'sh', '-c', 'read -r word; echo "$word"'], { cwd: folder.path, stdio: ['pipe', 'ignore', 'ignore'] })
  const exited = once(child, 'exit')
  const keeper = Number(await eventually('what stays behind', async () => /^\d+$/.exec((await readFile(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')).trim())?.[0]))
  process.kill(keeper, 'SIGSTOP')
  t.teardown(() => { try { process.kill(keeper, 'SIGCONT') } catch { /* it has ended */ } })
  child.stdin?.end('last words\n')
  await exited
  const ended = outputEnded(folder)
  t.equal(await Promise.race([ended, sleep(300, 'it is waited for')]), 'it is waited for')
  process.kill(keeper, 'SIGCONT')
  await ended
  t.equal(await readFile(join(directory, 'console'), 'utf8'), 'last words\n')
})

const skip = process.getuid?.() === 0 ? false : 'only root can become another user'
await t.test('where the VMM is started by root, what stays behind is the VM\'s user for good, and opens and makes everything as that', { skip }, async (t) => {
  const user = { uid: 61_013, gid: 61_014 }
  const directory = await mkdtemp(join(tmpdir(), 'berth-output-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  await chmod(directory, 0o711)
  const folder = runFolder(directory, 'run', 'none')
  await folder.make(user)
  for (const name of ['console', 'output', 'report']) {
    await writeFile(join(directory, name), '', { mode: 0o600 })
    if (name !== 'report') await chown(join(directory, name), user.uid, user.gid)
    await symlink(join(directory, name), join(folder.path, name))
  }
  const run = (): ChildProcess => spawn(OUTPUT_PROGRAM, [...outputArgs('v', user), 'sh', '-c', 'id -u; id -g; exec sleep 600'], { cwd: folder.path, stdio: 'ignore' })
  t.same(await once(run(), 'exit'), [126, null], 'a file that is not the user\'s is not opened')
  for (const name of ['output.sock', 'v_1025']) await rm(join(folder.path, name))
  await chown(join(directory, 'report'), user.uid, user.gid)
  const child = run()
  t.teardown(() => child.kill('SIGKILL'))
  const exited = once(child, 'exit')
  await eventually('the VMM has printed', async () => await readFile(join(directory, 'console'), 'utf8') === '0\n0\n')
  // What printed last may not have ended yet.
  const keeper = await eventually('what stays behind is its only child', async () => /^\d+$/.exec((await readFile(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')).trim())?.[0])
  const status = await readFile(`/proc/${keeper}/status`, 'utf8')
  for (const line of [/^Uid:(\s+61013){4}$/m, /^Gid:(\s+61014){4}$/m, /^Groups:\s*$/m, /^CapPrm:\s+0+$/m, /^CapEff:\s+0+$/m]) t.match(status, line)
  t.same((await stat(join(folder.path, 'v_1025'))).uid, user.uid, 'its sockets are the user\'s')
  child.kill('SIGKILL')
  await exited
  await outputEnded(folder)
})

/** A run folder with links to files, which are empty. */
async function withFiles (t: Test): Promise<{ readonly directory: string, readonly folder: RunFolder }> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-output-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  const folder = runFolder(directory, 'run', 'none')
  await folder.make(undefined)
  for (const name of ['console', 'output', 'report']) {
    await writeFile(join(directory, name), '')
    await symlink(join(directory, name), join(folder.path, name))
  }
  return { directory, folder }
}

/** Connects, again when as many as can wait do so already. */
async function call (path: string): Promise<Socket> {
  for (;;) {
    const socket = connect(path)
    try {
      await once(socket, 'connect')
      return socket.on('error', () => {})
    } catch (error) {
      if (!(error instanceof Error) || !('code' in error) || error.code !== 'EAGAIN') throw error
    }
  }
}

/** Writes, and waits for the acknowledgement. */
async function say (socket: Socket, text: string, total: bigint): Promise<void> {
  socket.write(text)
  let got = Buffer.alloc(0)
  while (got.length < 8) {
    const [chunk]: unknown[] = await once(socket, 'data')
    if (Buffer.isBuffer(chunk)) got = Buffer.concat([got, chunk])
  }
  if (got.readBigUInt64LE(0) !== total) throw new Error(`acknowledged ${got.readBigUInt64LE(0)} and not ${total}`)
}
