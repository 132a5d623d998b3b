// The command against the real server with real VMs; interactive ones in a real terminal.
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { pipeline } from 'node:stream'
import t, { type Test } from 'tap'
import { deferred } from '../../core/jobs/deferred.ts'
import { skipWithout } from '../../setup/structure/deleted.ts'
import { eventually } from '../helpers/eventually.ts'
import { testFolder } from '../helpers/folder.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { startTestServer } from '../helpers/server.ts'
import { startUpstreamRegistry } from '../helpers/upstream-registry.ts'
import { berth as plain, mainFile, type Ended } from './berth.ts'
import { openTerminal } from './terminal.ts'

const server = await startTestServer(t)
const image = await push(server, await busyboxImage(), 'cli/busybox:latest')
const env = { BERTH_URL: server.url, BERTH_TOKEN: server.key }
const SMALL = ['--size', '128MB', '--vcpus', '1', '--overlay-size', '256MB']

const berth = async (args: readonly string[], options: Parameters<typeof plain>[1] = {}): Promise<Ended> => await plain(args, { ...options, env: { ...env, ...options.env } })

/** Resolves when a command has said a text. */
function whenTold (text: string): { readonly seen: Promise<void>, told (out: string): string } {
  let say = (): void => {}
  const seen = new Promise<void>((resolve) => { say = resolve })
  return {
    seen,
    told (out) {
      if (out.includes(text)) say()
      return out
    }
  }
}

t.test('run prints what the program prints, ends with its exit code, and --rm leaves nothing', async (t) => {
  const ended = await berth(['run', '--rm', ...SMALL, '--name', 'once', image, 'sh', '-c', 'echo hello; exit 7'])
  t.match(ended, { code: 7, out: 'hello\n', error: /exit code 7/ })
  t.equal((await berth(['ps', '-a', '-q'])).out, '')
  t.match(await berth(['run', '--rm', ...SMALL, image, '/no/such/program']), { code: 127 })
})

t.test('Ctrl-C ends what run started, with exit code 130', async (t) => {
  const ended = await berth(['run', '--rm', ...SMALL, image, 'sh', '-c', 'while :; do echo tick; sleep 0.2; done'], { signalAfter: (out) => out.includes('tick') })
  t.equal(ended.code, 130)
  t.equal((await berth(['ps', '-a', '-q'])).out, '')
})

t.test('Ctrl-C before the answer to its create ends what run has asked for, all the same', async (t) => {
  for (const [options, left] of [[['--rm'], ''], [['-it'], 'Stopped'], [[], 'Stopped'], [['-d'], 'Stopped']] as const) {
    const { url, asked } = await slowToMake(t)
    t.match(await berth(['run', ...options, ...SMALL, '--name', 'early', image, 'sleep', '1000'], { env: { BERTH_URL: url }, signalWhen: asked }), { code: 130, out: '' }, options.join())
    await eventually(`${options.join()} leaves ${left === '' ? 'nothing' : left}`, async () => (await berth(['ps', '-a', '--format', '{{state}}'])).out.trim() === left)
    if (left !== '') await berth(['rm', '-f', 'early'])
  }
})

/** Between the command and the server: keeps the answers to creates back for a while. `asked` resolves when the first create has arrived there. */
async function slowToMake (t: Test): Promise<{ readonly url: string, readonly asked: Promise<void> }> {
  const { promise: asked, resolve } = deferred<void>()
  const relay = createServer((request, reply) => {
    const isCreate = request.method === 'POST' && request.url === '/instances'
    const onward = send(new URL(request.url ?? '/', server.url), { method: request.method, headers: request.headers }, (answer) => {
      setTimeout(() => { pipeline(answer, reply.writeHead(answer.statusCode ?? 502, answer.headers), () => undefined) }, isCreate ? 1000 : 0)
    }).on('error', () => reply.destroy())
    pipeline(request, onward, () => { if (isCreate) resolve() })
  }).listen(0, '127.0.0.1')
  t.teardown(() => { relay.close(); relay.closeAllConnections() })
  await once(relay, 'listening')
  return { url: `http://127.0.0.1:${(relay.address() as AddressInfo).port}`, asked }
}

t.test('an instance is made, listed, slept, woken, forked, kept and deleted', { skip: skipWithout('snapshots') }, async (t) => {
  const { out: id } = await berth(['run', '-d', ...SMALL, '--name', 'web', '--tag', 'team=a', image, 'sh', '-c', 'while :; do echo tick; sleep 0.2; done'])
  t.match(id, /^[a-z0-9]{24}\n$/)
  t.match(await berth(['wait', '--state', 'Running', 'web']), { code: 0, out: 'web\n' })
  t.match((await berth(['ps', '--tag', 'team=a'])).out, /web .*Running/)
  t.equal((await berth(['ps', '--tag', 'team=b', '-q'])).out, '')
  t.match((await berth(['logs', '--tail', '1', 'web'])).out, /^(?:tick\n){1,9}$/, 'what it prints meanwhile may come, too')
  t.match(await berth(['logs', '-f', 'web'], { signalAfter: (out) => out.includes('tick\ntick\ntick') }), { code: 130 })
  t.match((await berth(['stats', '--no-stream', '--json', 'web'])).out, /"instance_name": "web"/)
  t.match(await berth(['standby', 'web', 'nosuch']), { code: 3, out: 'web\n', error: /nosuch does not exist/ }, 'one that fails does not keep the other from its result')
  t.match((await berth(['inspect', 'web', '--format', '{{state}}'])).out, 'Standby\n')
  t.match(await berth(['exec', 'web', 'true']), { code: 125, error: /Standby/ })
  t.match(await berth(['restore', 'web']), { code: 0 })
  t.match(await berth(['fork', '--from-running', 'web', 'twin']), { code: 0 })
  const { out: snapshot } = await berth(['snapshot', 'create', 'twin', '--name', 'kept'])
  t.match((await berth(['snapshot', 'ls', '--instance', 'twin'])).out, /kept\s+Standby/)
  t.match(await berth(['snapshot', 'rm', snapshot.trim()]), { code: 0 })
  t.match(await berth(['rm', '-f', 'web', 'twin']), { code: 0, out: 'web\ntwin\n' })
})

t.test('an instance is checked, started again by its policy, and deleted at its time; events tell all of it', async (t) => {
  const { seen: ready, told } = whenTold('ready')
  const watched = berth(['events', '--json', '--resource', 'instance', '--id', 'job'], { signalAfter: (out) => told(out).includes('instance.deleted') })
  await ready
  const field = async (name: string): Promise<string> => (await berth(['inspect', 'job', '--format', `{{${name}}}`])).out.trim()
  t.match(await berth(['run', '-d', ...SMALL, '--name', 'job', '--restart', 'on-failure', '--restart-backoff', '1s', '--health-cmd', 'test -e /tmp/well', '--health-interval', '1s', '--health-retries', '1', '--health-start-period', '0s', image, 'sh', '-c', 'touch /tmp/well; sleep 1000']), { code: 0 })
  await eventually('it is healthy', async () => await field('health_status.status') === 'healthy')
  t.match(await berth(['exec', 'job', 'rm', '/tmp/well']), { code: 0 })
  await eventually('it has been started again since it was not', async () => await field('restart_status.last_reason') === 'health_check_failed' && Number(await field('restart_status.attempts')) >= 1)
  await eventually('it is healthy again', async () => await field('health_status.status') === 'healthy')
  t.match(await berth(['update', 'job', '--ttl', '2s']), { code: 0, out: 'job\n' })
  await eventually('it is gone', async () => (await berth(['inspect', 'job'])).code === 3)
  const { code, out } = await watched
  t.equal(code, 130)
  const types = out.trimEnd().split('\n').map((line) => (JSON.parse(line) as { type: string }).type)
  t.equal(types[0], 'ready')
  t.equal(types.at(-1), 'instance.deleted')
  t.ok(types.includes('instance.created'))
})

t.test('exec passes both streams, input and the exit code; cp copies both ways', async (t) => {
  await berth(['run', '-d', ...SMALL, '--name', 'box', image, 'sh', '-c', 'echo begun; sleep 3600'])
  t.match(await berth(['exec', '--wait', '60s', 'box', 'sh', '-c', 'echo out; echo err >&2; exit 3']), { code: 3, out: 'out\n', error: 'err\n' })
  t.match(await berth(['exec', '-i', 'box', 'wc', '-c'], { input: Buffer.alloc(3_000_000) }), { code: 0, out: '3000000\n' })
  t.match(await berth(['exec', 'box', 'nosuch']), { code: 127 })
  const folder = testFolder(t, { site: { 'index.html': '{"type":"end","final":true}', deep: { file: 'deep' } }, back: {} })
  t.match(await berth(['cp', join(folder, 'site'), 'box:/tmp']), { code: 0 })
  t.match(await berth(['cp', 'box:/tmp/site', join(folder, 'back')]), { code: 0 })
  t.equal(await readFile(join(folder, 'back/site/index.html'), 'utf8'), '{"type":"end","final":true}')
  t.equal(await readFile(join(folder, 'back/site/deep/file'), 'utf8'), 'deep')
  const archive = await berth(['cp', 'box:/etc/passwd', '-'])
  t.match(archive, { code: 0, out: /^passwd\0/ })
  t.match(await berth(['cp', 'box:/nosuch', folder]), { code: 1, error: /nosuch/ })
})

t.test('an image is pushed elsewhere and pulled from there, for a VM of it', { skip: skipWithout('pushes') }, async (t) => {
  const { host } = await startUpstreamRegistry(t)
  const elsewhere = `${host}/cli/elsewhere:v1`
  t.match(await berth(['push', image, elsewhere, '--insecure']), { code: 0, out: /^[a-z0-9]{24}\n$/, error: '' })
  t.match(await berth(['pull', elsewhere, `${host}/cli/nosuch:v1`]), { code: 3, out: `${elsewhere}\n`, error: /nosuch/ })
  t.match(await berth(['image', 'pull', elsewhere]), { code: 0, out: `${elsewhere}\n` })
  t.match(await berth(['image', 'inspect', elsewhere, '--format', '{{status}}']), { code: 0, out: 'ready\n' })
  t.match(await berth(['run', '--rm', ...SMALL, elsewhere, 'echo', 'pulled']), { code: 0, out: 'pulled\n' })
})

t.test('everything about a snapshot, a volume and a webhook is told', { skip: skipWithout('snapshots', 'volumes') }, async (t) => {
  const { out: snapshot } = await berth(['snapshot', 'create', 'box', '--name', 'told'])
  t.match(JSON.parse((await berth(['snapshot', 'inspect', snapshot.trim()])).out), { name: 'told', kind: 'Standby', source_instance_name: 'box' })
  t.match(await berth(['snapshot', 'rm', snapshot.trim()]), { code: 0 })
  t.match(await berth(['volume', 'create', 'told', '--size', '1']), { code: 0 })
  t.match(await berth(['volume', 'attach', 'told', 'box', '/told']), { code: 0 })
  t.match(JSON.parse((await berth(['volume', 'inspect', 'told'])).out), { name: 'told', size_gb: 1, attachments: [{ mount_path: '/told' }] })
  t.match(await berth(['volume', 'detach', 'told', 'box']), { code: 0 })
  t.match(await berth(['volume', 'rm', 'told']), { code: 0 })
  const { out: hook } = await berth(['webhook', 'create', 'https://ci.example.com/hook', '--format', '{{id}}'])
  t.match(JSON.parse((await berth(['webhook', 'inspect', hook.trim()])).out), { id: hook.trim(), url: 'https://ci.example.com/hook' })
  t.match(await berth(['webhook', 'rm', hook.trim()]), { code: 0 })
})

t.test('the server is told, too: its key, its plugins, what the doctor finds', async (t) => {
  t.match(await berth(['whoami']), { code: 0, out: `at ${server.url}\nscopes   *\n` })
  t.match(await berth(['key', 'ls', '--format', '{{name}}']), { code: 0, out: /^admin$/m })
  t.match(await berth(['plugins']), { code: 0, out: /^hypervisor-qemu +started *$/m })
  const doctor = await berth(['doctor', '--json'])
  t.equal(doctor.code, 0, doctor.error)
  const findings = JSON.parse(doctor.out) as { subject: string, verdict: string, found: string }[]
  t.match(findings.find(({ subject }) => subject === 'server'), { verdict: 'ok', found: `answers at ${server.url}` })
  t.match(findings.find(({ subject }) => subject === 'key'), { verdict: 'ok' })
  t.match(findings.find(({ subject }) => subject === 'database'), { verdict: 'ok' })
  t.match(findings.find(({ subject }) => subject === 'qemu'), { found: /^runs VMs with / })
  t.match(findings.find(({ subject }) => subject === 'plugin instances'), { verdict: 'ok', found: 'runs' })
})

t.test('wait gives up at its time with 124; the VM goes on', async (t) => {
  t.match(await berth(['wait', '--state', 'Standby', '--timeout', '2s', 'box']), { code: 124, out: '', error: /^berth: (?:box is not Standby yet|it took longer than 2 s)\n$/ })
  t.match(await berth(['inspect', 'box', '--format', '{{state}}']), { out: 'Running\n' })
})

t.test('a terminal is passed on with its size, its keys and a full-screen program, and is whole afterwards', async (t) => {
  const terminal = await openTerminal(t, { env: { ...env, BERTH_URL: server.url } })
  // Typed at once, so that no key is meant for one shell and reaches the other.
  await terminal.type(`node ${mainFile} exec -it box sh; echo code=$?`)
  await terminal.shows('~ #', '/ #')
  await terminal.type('stty size')
  t.ok(await terminal.shows('30 100'), '30 100')
  await terminal.tmux('resize-window', '-x', '90', '-y', '25')
  await terminal.type('sleep 1; stty size')
  t.ok(await terminal.shows('25 90'), '25 90')
  // The quotes tell what is printed from what is typed.
  await terminal.type('sh -c \'trap "echo cau""ght; exit" INT; echo be""gun; while :; do sleep 0.1; done\'')
  await terminal.shows('begun')
  await terminal.tmux('send-keys', 'C-c')
  t.ok(await terminal.shows('caught'), 'caught')
  await terminal.type('vi /tmp/typed')
  await terminal.shows('- /tmp/typed')
  await terminal.type('ihello from vi')
  // The editor tells a key from the beginning of a sequence by time; its last line says which mode it is in.
  await terminal.shows('I /tmp/typed')
  await terminal.tmux('send-keys', 'Escape')
  await terminal.shows('- /tmp/typed')
  await terminal.type(':wq')
  await terminal.shows('~ #', '/ #')
  await terminal.type('echo file=$(head -1 /tmp/typed)')
  t.ok(await terminal.shows('file=hello from vi'), 'what was typed into the editor')
  await terminal.type('exit 5')
  t.ok(await terminal.shows('code=5'), 'code=5')
  await terminal.clear()
  await terminal.type('stty -a | grep -c " echo "')
  t.ok(await terminal.shows('1\n'), 'the terminal shows what is typed')
  await terminal.clear()
  await terminal.type(`node ${mainFile} exec -it box sh; echo left=$?`)
  await terminal.shows('~ #', '/ #')
  await terminal.tmux('send-keys', 'C-p', 'C-q')
  t.ok(await terminal.shows('left=0'), 'left=0')
  await terminal.clear()
  await terminal.type(`node ${mainFile} exec -it box sh; echo ended=$?`)
  await terminal.shows('~ #', '/ #')
  await terminal.tmux('send-keys', 'C-d')
  t.ok(await terminal.shows('ended=0'), 'Ctrl-D ends the shell')
  await terminal.clear()
  await terminal.type(`node ${mainFile} exec -i box cat; echo input=$?`)
  await terminal.type('a line')
  await terminal.shows('a line\na line')
  await terminal.tmux('send-keys', 'C-d')
  t.ok(await terminal.shows('input=0'), 'and input without a terminal in the VM')
  for (const line of ['logs -f ticking', 'exec box sleep 1000', `run --rm ${SMALL.join(' ')} --name pressed ${image} sh -c "while :; do echo tick; sleep 1; done"`]) {
    if (line.startsWith('logs')) t.match(await berth(['run', '-d', ...SMALL, '--name', 'ticking', image, 'sh', '-c', 'while :; do echo tick; sleep 1; done']), { code: 0 })
    await terminal.clear()
    await terminal.type(`node ${mainFile} ${line}; echo pressed=$?`)
    if (line.startsWith('exec')) await eventually('it runs', async () => (await berth(['exec', 'box', 'pidof', 'sleep'])).out.trim().split(' ').length >= 2)
    else await terminal.shows('\ntick\ntick')
    await terminal.tmux('send-keys', 'C-c')
    t.ok(await terminal.shows('pressed=130'), `${line}: Ctrl-C has 130`)
  }
  t.match(await berth(['inspect', 'pressed']), { code: 3 }, 'and what run started is gone')
  t.match(await berth(['rm', '-f', 'ticking']), { code: 0 })
})

t.test('run -it is a shell in a VM of its own, with variables, whose exit code is the command\'s', async (t) => {
  const terminal = await openTerminal(t, { env: { ...env, BERTH_URL: server.url } })
  await terminal.type(`node ${mainFile} run -it --rm -e GREETING=hello ${SMALL.join(' ')} --name shell ${image} sh; echo ran=$?`)
  await terminal.shows('~ #', '/ #')
  // The quotes tell what is printed from what is typed.
  await terminal.type('echo "wo""rd=$GREETING"; stty size')
  t.ok(await terminal.shows('word=hello\n30 100'), 'its variable, and the size of the terminal')
  await terminal.type('exit 7')
  t.ok(await terminal.shows('ran=7'), 'ran=7')
  t.match(await berth(['inspect', 'shell']), { code: 3 }, 'nothing of it stays')
})

t.test('stats goes on on a terminal until Ctrl-C', async (t) => {
  const terminal = await openTerminal(t, { env: { ...env, BERTH_URL: server.url } })
  await terminal.type(`node ${mainFile} stats box; echo stopped=$?`)
  await terminal.shows('box ')
  const first = await terminal.screen()
  const busy = berth(['exec', 'box', 'timeout', '8', 'sh', '-c', 'while :; do :; done'])
  await eventually('it tells other figures', async () => (await terminal.screen()) !== first && (await terminal.screen()).includes('box '), { explain: terminal.screen })
  await terminal.tmux('send-keys', 'C-c')
  t.ok(await terminal.shows('stopped=130'), 'stopped=130')
  await busy
})

t.test('a server that dies in the middle is told in one line, and the exit code says so', async (t) => {
  const { seen: followed, told } = whenTold('begun')
  const following = berth(['logs', '-f', 'box'], { signalAfter: (out) => told(out) === 'never' })
  const executing = berth(['exec', 'box', 'sleep', '1000'])
  await followed
  await eventually('both are open', async () => (await berth(['exec', 'box', 'pidof', 'sleep'])).out.trim().split(' ').length >= 2)
  await server.kill9()
  t.match(await following, { code: 6, error: /^berth: .*lost/ })
  t.match(await executing, { code: 125, error: /^berth: .*lost/ })
  t.match(await berth(['ps']), { code: 6, error: /nothing answers there/ })
  await server.restart()
})
