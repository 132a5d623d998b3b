// berth-vm-output: what VMM and guest print is in their files, acknowledged, also when these move; and it ends with the VMM.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { outputArgs, outputEnded, OUTPUT_PROGRAM, rotateOutput } from '../../../../core/library/vmm/output.ts'
import { runFolder } from '../../../../core/library/vmm/run-folder.ts'
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
