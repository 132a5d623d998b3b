// Commands in a real machine over the real WebSocket.
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import t from 'tap'
import { WebSocket } from 'ws'
import { runCommand, startCommand } from '../helpers/exec.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { createShell, waitFor } from '../helpers/machine.ts'
import { startTestServer } from '../helpers/server.ts'
import { openFilesOf } from '../helpers/open-files.ts'
import { memoryOf } from '../helpers/vmm.ts'
import { eventually } from '../helpers/eventually.ts'

const server = await startTestServer(t)
const image = await push(server, await busyboxImage({ Env: ['PATH=/bin', 'FROM_IMAGE=yes'] }), 'exec/busybox:latest')
const { id } = await createShell(server, image, 'while true; do sleep 1; done', { env: { FROM_CALLER: 'yes' } })
await waitFor(server, id, 'Running')

const sh = (script: string): { command: string[] } => ({ command: ['/bin/sh', '-c', script] })

/** How many processes of the guest have a command line that begins so. */
async function countProcesses (commandLine: string): Promise<number> {
  const { stdout } = await runCommand(server, id, sh('for f in /proc/[0-9]*/cmdline; do tr "\\0" " " < $f; echo; done 2>/dev/null'))
  return stdout.split('\n').filter(line => line.startsWith(commandLine)).length
}

/** Waits until no such process is left; the guest tells nobody when its processes go. */
async function areGone (commandLine: string): Promise<boolean> {
  for (let attempt = 0; attempt < 50; attempt++) {
    if (await countProcesses(commandLine) === 0) return true
    await new Promise(resolve => setTimeout(resolve, 100))
  }
  return false
}

t.test('standard input reaches the command and its end is seen', async (t) => {
  t.strictSame(await runCommand(server, id, { command: ['/bin/sort', '-r'] }, 'a\nb\n'), { stdout: 'b\na\n', stderr: '', exitCode: 0, error: undefined })
})

t.test('stdout and stderr stay apart, and the exit code is the command\'s', async (t) => {
  t.match(await runCommand(server, id, sh('echo out; echo err >&2; exit 5')), { stdout: 'out\n', stderr: 'err\n', exitCode: 5 })
})

t.test('a command that is not there is 127, one killed by a signal is 128 and its number', async (t) => {
  t.match(await runCommand(server, id, { command: ['/no/such/thing'] }), { exitCode: 127 })
  t.match(await runCommand(server, id, sh('kill -15 $$')), { exitCode: 143 })
})

t.test('env, cwd and user are obeyed', async (t) => {
  const { stdout } = await runCommand(server, id, { ...sh('echo $FROM_IMAGE $FROM_CALLER $MINE; pwd; id -u'), env: { MINE: 'yes' }, cwd: '/tmp', user: 'app' })
  t.equal(stdout, 'yes yes yes\n/tmp\n1000\n')
})

t.test('a timeout ends the command with 124', async (t) => {
  const started = Date.now()
  t.match(await runCommand(server, id, { ...sh('sleep 60'), timeout: 1 }), { exitCode: 124 })
  t.ok(Date.now() - started < 10_000)
})

t.test('output comes while the command still runs', async (t) => {
  const command = await startCommand(server, id, sh('echo first; read line; echo "got $line"'))
  const output: string[] = []
  const first = new Promise<void>(resolve => command.onOutput((_stream, data) => {
    output.push(data.toString())
    resolve()
  }))
  await first
  t.strictSame(output, ['first\n'])
  command.write('word\n')
  t.match(await command.result, { exitCode: 0 })
  t.equal(output.join(''), 'first\ngot word\n')
})

t.test('signals are passed on', async (t) => {
  const command = await startCommand(server, id, sh('trap "exit 33" USR1; echo ready; while true; do sleep 0.1; done'))
  await new Promise<void>(resolve => command.onOutput(() => resolve()))
  command.control({ signal: 'USR1' })
  t.match(await command.result, { exitCode: 33 })
})

t.test('a terminal has a size that can be changed', async (t) => {
  const command = await startCommand(server, id, { ...sh('trap "stty size; exit 0" WINCH; stty size; while true; do sleep 0.1; done'), tty: true, rows: 30, cols: 100 })
  let text = ''
  const first = new Promise<void>(resolve => command.onOutput((_stream, data) => {
    text += data.toString()
    if (text.includes('30 100')) resolve()
  }))
  await first
  command.control({ resize: { rows: 40, cols: 120 } })
  t.match(await command.result, { exitCode: 0 })
  t.match(text, /40 120/)
})

t.test('100 MB through stdout arrive intact while the server stays small', { timeout: 900_000 }, async (t) => {
  const size = 100 * 2 ** 20
  await runCommand(server, id, sh(`dd if=/dev/urandom of=/big bs=1M count=${size / 2 ** 20} 2>/dev/null; sync`))
  const wanted = (await runCommand(server, id, sh('sha256sum /big'))).stdout.split(' ')[0]
  const before = await memoryOf(server.pid)
  const command = await startCommand(server, id, { command: ['/bin/cat', '/big'] })
  const hash = createHash('sha256')
  let bytes = 0
  let mostRssBytes = 0
  command.onOutput((_stream, data) => {
    hash.update(data)
    bytes += data.length
  })
  const sampler = setInterval(() => {
    memoryOf(server.pid).then(({ rssBytes }) => { mostRssBytes = Math.max(mostRssBytes, rssBytes) }, () => undefined)
  }, 100)
  const started = Date.now()
  const { exitCode } = await command.result
  clearInterval(sampler)
  t.equal(exitCode, 0)
  t.equal(bytes, size)
  t.equal(hash.digest('hex'), wanted)
  const grownBytes = mostRssBytes - before.rssBytes
  t.comment(`100 MB in ${((Date.now() - started) / 1000).toFixed(1)} s; server memory grew by ${(grownBytes / 2 ** 20).toFixed(1)} MB`)
  t.ok(grownBytes < 48 * 2 ** 20, `the server grew by ${(grownBytes / 2 ** 20).toFixed(1)} MB`)
})

t.test('a client that reads slowly stops the command instead of filling the server', { timeout: 900_000 }, async (t) => {
  const before = await memoryOf(server.pid)
  const command = await startCommand(server, id, { command: ['/bin/cat', '/dev/zero'] })
  await new Promise<void>(resolve => command.onOutput(() => resolve()))
  command.socket.pause()
  await new Promise(resolve => setTimeout(resolve, 5000))
  const { rssBytes } = await memoryOf(server.pid)
  t.ok(rssBytes - before.rssBytes < 32 * 2 ** 20, `the server grew by ${((rssBytes - before.rssBytes) / 2 ** 20).toFixed(1)} MB`)
  t.equal(await countProcesses('/bin/cat /dev/zero'), 1, 'the command is still there')
  command.socket.terminate()
  t.ok(await areGone('/bin/cat /dev/zero'), 'it is gone with its client')
})

t.test('killing the client kills the command and its children', async (t) => {
  const command = await startCommand(server, id, sh('sleep 7654 & sleep 7654 & echo up; wait'))
  await new Promise<void>(resolve => command.onOutput(() => resolve()))
  t.equal(await countProcesses('sleep 7654'), 2)
  command.socket.terminate()
  t.ok(await areGone('sleep 7654'), 'nothing of it is left')
})

t.test('fifty commands at once all give their own answers, and no file stays open', { timeout: 900_000 }, async (t) => {
  await runCommand(server, id, { command: ['/bin/true'] })
  const before = await openFilesOf(server.pid)
  const answers = await Promise.all(Array.from({ length: 50 }, async (_unused, number) => await runCommand(server, id, sh(`cat; exit ${number}`), `input ${number}`)))
  t.strictSame(answers.map(({ stdout, exitCode }) => [stdout, exitCode]), answers.map((_answer, number) => [`input ${number}`, number]))
  // The sockets are closed behind the answers.
  t.ok(await eventually(`no more than the ${before} open files of before`, async () => await openFilesOf(server.pid) <= before + 2))
})

t.test('a compatible client gets merged output and a text resize is no input', async (t) => {
  const socket = new WebSocket(`${server.url.replace(/^http/, 'ws')}/instances/${id}/exec`, { headers: { authorization: `Bearer ${server.key}` } })
  await once(socket, 'open')
  const seen: { text: string, isBinary: boolean }[] = []
  socket.on('message', (data: Buffer, isBinary: boolean) => { seen.push({ text: data.toString(), isBinary }) })
  socket.send(JSON.stringify({ command: ['/bin/sh', '-c', 'read a; echo "$a"; echo err >&2; exit 4'], tty: false }))
  socket.send('typed\n')
  await once(socket, 'close')
  t.equal(seen.filter(({ isBinary }) => isBinary).map(({ text }) => text).join(''), 'typed\nerr\n')
  t.strictSame(seen.filter(({ isBinary }) => !isBinary).map(({ text }) => JSON.parse(text)), [{ exitCode: 4 }])
})
