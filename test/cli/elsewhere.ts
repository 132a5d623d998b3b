// The command in a network namespace of its own, with TLS between it and the server: with a key that lacks scopes, and with a server that dies; with real VMs.
// Run by elsewhere.long.test.ts.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { createHostCommands } from '../../core/process/run.ts'
import { missingPrivileges } from '../../plugins/networking/privileges.ts'
import { makeAuthority } from '../core/tls/certificates.ts'
import { eventually } from '../helpers/eventually.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { startTestServer } from '../helpers/server.ts'
import { berth as plain, mainFile, type Ended } from './berth.ts'
import { openTerminal } from './terminal.ts'

const missing = missingPrivileges()
if (missing !== undefined) {
  t.plan(0, missing)
  process.exit()
}

const SERVER_ADDRESS = '198.51.100.1'
const CLIENT_ADDRESS = '198.51.100.2'
const PORT = 8443
const TICK = 'while :; do echo tick; sleep 0.5; done'
/** what it prints, told from what is typed */
const PRINTED = /^tick$/m
const SMALL = ['--size', '256MB', '--vcpus', '1', '--overlay-size', '2GB']
/** More than is copied before the server is gone: files with a hole, which take no space. */
const NEVER_DONE = 4 * 2 ** 30
const { run } = createHostCommands()

// The namespace of the clients lives as long as a process in it.
const holder = spawn('unshare', ['--net', 'sleep', 'infinity'], { stdio: 'ignore' })
t.teardown(async () => {
  holder.kill('SIGKILL')
  await once(holder, 'exit')
})
const there = ['nsenter', `--net=/proc/${holder.pid ?? 0}/ns/net`]
const [enter = '', ...enterArgs] = there
await run('ip', ['link', 'set', 'lo', 'up'])
await eventually('the namespace is there', async () => (await run(enter, [...enterArgs, 'readlink', '/proc/self/ns/net'])).stdout !== (await run('readlink', ['/proc/self/ns/net'])).stdout)
await run('ip', ['link', 'add', 'berth-test0', 'type', 'veth', 'peer', 'name', 'berth-test1', 'netns', String(holder.pid)])
await run('ip', ['addr', 'add', `${SERVER_ADDRESS}/24`, 'dev', 'berth-test0'])
await run('ip', ['link', 'set', 'berth-test0', 'up'])
await run(enter, [...enterArgs, 'ip', 'addr', 'add', `${CLIENT_ADDRESS}/24`, 'dev', 'berth-test1'])
await run(enter, [...enterArgs, 'ip', 'link', 'set', 'berth-test1', 'up'])

const folder = await mkdtemp(join(tmpdir(), 'berth-elsewhere-'))
t.teardown(async () => { await rm(folder, { recursive: true, force: true }) })
const authority = await makeAuthority(folder)
const { certificate, key } = await authority.issue('server', [`IP:${SERVER_ADDRESS}`])
const server = await startTestServer(t, { server: { tls: { listen: `${SERVER_ADDRESS}:${PORT}`, certificate, key } } })
const image = await push(server, await busyboxImage(), 'cli/busybox:latest')
const env = { BERTH_URL: `https://${SERVER_ADDRESS}:${PORT}`, BERTH_TOKEN: server.key, BERTH_CA: authority.file }
const berth = async (args: readonly string[], more: Readonly<Record<string, string>> = {}): Promise<Ended> => await plain(args, { env: { ...env, ...more }, through: there })
const lines = (text: string): number => text.trimEnd().split('\n').length

t.test('it talks TLS with the authority it is given, and with no other', async (t) => {
  t.match(await berth(['run', '-d', ...SMALL, '--name', 'web', image, 'sh', '-c', TICK]), { code: 0 })
  t.match(await berth(['wait', '--state', 'Running', 'web']), { code: 0, out: 'web\n' })
  t.match(await berth(['exec', '--wait', '60s', 'web', 'echo', 'hello']), { code: 0, out: 'hello\n' })
  t.match(await berth(['exec', 'web', 'sh', '-c', 'exit 7']), { code: 7 })
  t.match(await berth(['exec', 'web', '/nosuch']), { code: 127 })
  const stranger = await berth(['ps'], { BERTH_CA: '' })
  t.match(stranger, { code: 6, out: '', error: /^berth: https:\/\/198\.51\.100\.1:8443: its certificate comes from an unknown authority; name it with --ca FILE/ })
  t.equal(lines(stranger.error), 1)
  t.match(await berth(['exec', 'web', 'echo', 'x'], { BERTH_CA: '' }), { code: 125, out: '', error: /unknown authority/ })
})

t.test('a key that lacks a scope is told what it lacks, in one line, and the exit code is 4, or 125 where the program\'s would be', async (t) => {
  const made = await berth(['key', 'create', 'reader', '--scope', 'image:read'])
  const weak = { BERTH_TOKEN: made.out.trim() }
  for (const [args, code, scope] of [
    [['ps'], 4, 'instance:read'], [['logs', '-f', 'web'], 4, 'instance:read'], [['stop', 'web'], 4, 'instance:write'], [['rm', '-f', 'web'], 4, 'instance:delete'],
    [['cp', 'web:/etc/passwd', '-'], 4, 'instance:'], [['exec', 'web', 'echo', 'x'], 125, 'instance:write'], [['run', '--rm', image, 'echo', 'x'], 125, 'image:write|instance:write']
  ] as const) {
    const ended = await berth(args, weak)
    t.match(ended, { code, out: '', error: new RegExp(`^berth: .*(?:${scope})`) }, args.join(' '))
    t.equal(lines(ended.error), 1, ended.error)
  }
  t.match(await berth(['image', 'ls', '-q'], weak), { code: 0, out: /busybox/ }, 'what it may do it does')
  t.match(await berth(['ps'], { BERTH_TOKEN: 'unknown' }), { code: 4, error: /berth login/ })
})

t.test('files and folders are copied both ways', async (t) => {
  const source = join(folder, 'source')
  await mkdir(join(source, 'deep'), { recursive: true })
  await writeFile(join(source, 'deep/file'), 'deep')
  t.match(await berth(['cp', source, 'web:/tmp']), { code: 0, error: '' })
  t.match(await berth(['cp', 'web:/tmp/source', join(folder, 'back')]), { code: 0, error: '' })
  t.equal(await readFile(join(folder, 'back/deep/file'), 'utf8'), 'deep')
})

/** Whether a file of a folder of this host is being made and has bytes. */
async function hasHalf (path: string): Promise<boolean> {
  const half = (await readdir(path)).find((name) => name.startsWith('.berth-cp-'))
  return half !== undefined && (await stat(join(path, half)).catch(() => ({ size: 0 }))).size > 0
}

t.test('a server that dies leaves the terminal whole, one line that says so, and the documented exit code', async (t) => {
  const open = async (): Promise<Awaited<ReturnType<typeof openTerminal>>> => await openTerminal(t, { shell: [...there, 'sh'], env })
  const [logs, exec, ran, copyOut, copyIn] = [await open(), await open(), await open(), await open(), await open()]
  const here = join(folder, 'copied')
  await mkdir(here)
  await writeFile(join(folder, 'large'), '')
  await truncate(join(folder, 'large'), NEVER_DONE)
  t.match(await berth(['exec', 'web', 'sh', '-c', `mkdir /up; truncate -s ${NEVER_DONE} /large`]), { code: 0 })
  const sent = async (): Promise<boolean> => (await berth(['exec', 'web', 'find', '/up', '-name', '.berth-put-*', '-size', '+0'])).out !== ''
  const command = `node ${mainFile}`
  await logs.type(`${command} logs -f web; echo code=$?`)
  await exec.type(`${command} exec -it web sh -c '${TICK}'; echo code=$?`)
  await ran.type(`${command} run --name second ${SMALL.join(' ')} ${image} sh -c '${TICK}'; echo code=$?`)
  for (const terminal of [logs, exec, ran]) await eventually('what the program prints is there', async () => PRINTED.test(await terminal.screen()), { explain: terminal.screen })
  await copyOut.type(`${command} cp web:/large ${here}; echo code=$?`)
  await copyIn.type(`${command} cp ${join(folder, 'large')} web:/up/large; echo code=$?`)
  await eventually('both copies are under way', async () => await hasHalf(here) && await sent(), { explain: async () => `${await copyOut.screen()}${await copyIn.screen()}` })
  await server.kill9()
  for (const [terminal, code] of [[logs, 6], [exec, 125], [ran, 125], [copyOut, 6], [copyIn, 6]] as const) {
    t.ok(await terminal.shows(`code=${code}`), `code=${code}`)
    t.match(await terminal.screen(), /^berth: .*lost/m)
    await terminal.type('clear; stty -a | grep -c " echo .*"; stty -a | grep -c " icanon"')
    t.ok(await terminal.shows('1\n1\n'), 'what is typed is shown, and comes by lines')
  }
  t.match(await berth(['ps']), { code: 6, error: /nothing answers there/ })
  await server.restart()
  t.match(await berth(['ps', '--format', '{{name}} {{state}}']), { code: 0, out: /web Running/ }, 'what ran goes on')
  t.strictSame(await readdir(here), [], 'half a file has no name here')
  await eventually('and none in the VM', async () => (await berth(['exec', '--wait', '60s', 'web', 'ls', '-A', '/up'])).out === '')
})
