// The commands besides `serve`, run in this process.
import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { runCommandLine } from '../../../core/cli/run.ts'
import type { Environment } from '../../../core/config/environment.ts'
import { packageRoot } from '../../../core/package-root.ts'
import { skipWithout, withoutDeleted } from '../../../setup/structure/deleted.ts'
import { ADMIN_KEY, bareApp, temporaryFolder } from '../bare-app.ts'

interface Outcome { readonly code: number, readonly out: string, readonly error: string }

async function berth (args: readonly string[], environment: Environment = {}): Promise<Outcome> {
  const out: string[] = []
  const error: string[] = []
  const code = await runCommandLine(args, { environment, print: line => { out.push(line) }, complain: line => { error.push(line) } })
  return { code, out: out.join('\n'), error: error.join('\n') }
}

async function fileWith (t: Test, text: string): Promise<string> {
  const file = join(await temporaryFolder(t), 'berth.yaml')
  await writeFile(file, text)
  return file
}

t.test('help and version go to standard output', async (t) => {
  for (const args of [['--help'], ['help'], ['serve', '--help']]) {
    const { code, out } = await berth(args)
    t.equal(code, 0)
    for (const word of ['serve', 'check-config', 'print-config', 'token', 'BERTH_DATA_DIR', 'BERTH_CONFIG']) t.match(out, word)
  }
  const { version } = JSON.parse(await readFile(join(packageRoot, 'package.json'), 'utf8'))
  t.equal((await berth(['--version'])).out, version)
})

t.test('a wrong command line gives 2 and the usage', async (t) => {
  const table: [string[], RegExp][] = [
    [[], /a command is needed[^]*usage: berth COMMAND/],
    [['sevre'], /there is no command "sevre"[^]*usage: berth COMMAND/],
    [['check-config', '--confg', 'x'], /--confg[^]*usage: berth check-config/],
    [['check-config', 'x'], /usage: berth check-config/],
    [['token'], /token needs one of create, list, revoke[^]*usage: berth token/],
    [['token', 'burn'], /token has no "burn"/],
    [['token', 'create'], /needs --name/],
    [['token', 'create', '--name', 'x', '--expires-in', 'soon'], /--expires-in must be a duration/],
    [['token', 'revoke'], /needs one key id/]
  ]
  for (const [args, message] of table) {
    const { code, error, out } = await berth(args)
    t.strictSame([code, out], [2, ''], args.join(' '))
    t.match(error, message)
  }
})

t.test('check-config names the file and the order, or every problem', async (t) => {
  const good = await fileWith(t, 'log:\n  level: warn\n')
  const { code, out } = await berth(['check-config', '--config', good])
  t.equal(code, 0)
  t.match(out, new RegExp(`^${good}: OK\nplugins, in start order: `))
  const bad = await fileWith(t, 'log:\n  level: 3\nserver:\n  lisen: x\n')
  const failure = await berth(['check-config'], { BERTH_CONFIG: bad })
  t.equal(failure.code, 1)
  t.match(failure.error, /berth\.yaml:2: log\.level must be one of[^]*berth\.yaml:4: server\.lisen is not a known key; did you mean "listen"\?/)
  t.match(await berth(['check-config', '--config', '/nonexistent/berth.yaml']), { code: 1, error: /\/nonexistent\/berth\.yaml cannot be read/ })
})

t.test('check-config asks plugins what their schemas cannot say, and names the further files that are right', async (t) => {
  const file = await fileWith(t, 'plugins:\n  extra:\n    module: ./extra.mjs\n    config:\n      depth: 3\n')
  await writeFile(join(file, '../extra.mjs'), `export const plugin = { manifest: { id: 'extra', provides: [], requires: [],
    config: { type: 'object', additionalProperties: false, properties: { depth: { type: 'integer' } } } },
    check: async ({ depth }, folder) => ({ problems: depth > 3 ? ['extra: ' + depth + ' is too deep', 'extra: and so on'] : [], files: [folder + '/beside.txt'] }) }`)
  t.match(await berth(['check-config', '--config', file]), { code: 0, out: `${file}: OK\n${join(file, '../beside.txt')}: OK\n` })
  await writeFile(file, 'plugins:\n  extra:\n    module: ./extra.mjs\n    config:\n      depth: 4\n')
  t.match(await berth(['check-config', '--config', file]), { code: 1, out: '', error: /- extra: 4 is too deep\n {2}- extra: and so on/ })
})

t.test('check-config refuses values that the start would refuse', async (t) => {
  const refused: Readonly<Record<string, readonly [string, RegExp]>> = {
    ports: ['{ firstPort: 3000, lastPort: 2000 }', /plugins\.ports\.config\.firstPort: must not be above lastPort/],
    volumes: ['{ maxSize: 1MB }', /plugins\.volumes\.config\.maxSize: must be at least 1GB/],
    ingress: ['{ listen: { http: [80], https: [80] } }', /plugins\.ingress\.config\.listen: port 80 stands in http and in https/],
    networking: ['{ allowPrivate: [ 999.1.1.1/8 ] }', /plugins\.networking\.config\.allowPrivate\.0: 999\.1\.1\.1\/8 is no IPv4 address/],
    egress: ['{ allowPrivate: [ 999.1.1.1/40 ], roots: [ /nonexistent.pem ] }', /plugins\.egress\.config\.allowPrivate\.0: [^]*plugins\.egress\.config\.roots\.0: /],
    instances: ['{ defaults: { vcpus: 100 }, limits: { maxVcpus: 4 } }', /plugins\.instances\.config\.defaults: a default lies outside of limits/],
    builds: ['{ vcpus: 8, maxVcpus: 4 }', /plugins\.builds\.config\.vcpus: is more than its maximum/],
    resources: ['{ capacity: { diskIo: 0MB/s } }', /plugins\.resources\.config\.capacity\.diskIo: 0MB\/s is no rate/]
  }
  for (const [id, [config, error]] of Object.entries(withoutDeleted(refused))) {
    const file = await fileWith(t, `plugins:\n  ${id}:\n    config: ${config}\n`)
    t.match(await berth(['check-config', '--config', file]), { code: 1, out: '', error }, id)
    await writeFile(file, `plugins:\n  ${id}:\n    enabled: true\n`)
    t.match(await berth(['check-config', '--config', file]), { code: 0 }, id)
  }
})

t.test('check-config checks the file of a proxy that systemd runs as well, beside its own', { skip: skipWithout('egress') }, async (t) => {
  const managed = 'plugins:\n  egress:\n    config:\n      proxy: { manage: false, controlSocket: /run/berth-egress/control.sock }\n'
  const file = await fileWith(t, managed)
  t.match(await berth(['check-config', '--config', file]), { code: 0 }, 'there may be none')
  const proxys = join(file, '../egress.yaml')
  await cp(join(packageRoot, 'systemd/etc/egress.yaml'), proxys)
  t.match(await berth(['check-config', '--config', file]), { code: 0, out: `${proxys}: OK` })
  await writeFile(proxys, `${await readFile(proxys, 'utf8')}allowPrivat: [ 10.0.0.0/8 ]\nlimits: { connections: many }\n`)
  t.match(await berth(['check-config', '--config', file]), { code: 1, out: '', error: /egress\.yaml: .*allowPrivat\b.*limits\.connections/ })
  await writeFile(file, `${managed}      allowPrivate: [ 10.0.0.0/8 ]\n`)
  t.match(await berth(['check-config', '--config', file]), { code: 1, error: /plugins\.egress\.config\.allowPrivate: .*\/etc\/berth\/egress\.yaml[^]*egress\.yaml: .*allowPrivat\b/ }, 'all at once')
  await writeFile(file, 'plugins: {}\n')
  t.match(await berth(['check-config', '--config', file]), { code: 0 }, 'a proxy of the server\'s own has no file there')
})

t.test('--config wins over $BERTH_CONFIG', async (t) => {
  const one = await fileWith(t, 'log:\n  level: warn\n')
  t.equal(parse((await berth(['print-config', '--config', one], { BERTH_CONFIG: '/nonexistent' })).out).log.level, 'warn')
})

t.test('print-config shows what the server would use, without secrets', async (t) => {
  const file = await fileWith(t, 'database:\n  url: mysql://berth:hunter2@db/berth\nplugins:\n  extra:\n    module: ./extra.mjs\n    config:\n      token: tok-secret\n  off:\n    module: ./off.mjs\n    enabled: false\n    config:\n      token: off-secret\n')
  await writeFile(join(file, '../extra.mjs'), `export const plugin = { manifest: { id: 'extra', provides: [], requires: [],
    config: { type: 'object', additionalProperties: false, properties: { token: { type: 'string', secret: true }, depth: { type: 'integer', default: 3 } } } } }`)
  const { code, out } = await berth(['print-config', '--config', file], { BERTH_API_KEY: 'key-secret-0123456789', BERTH_LISTEN: '127.0.0.1:0' })
  t.equal(code, 0)
  t.notMatch(out, /hunter2|-secret/)
  const printed = parse(out)
  t.match(printed, { server: { listen: '127.0.0.1:0', apiKey: '***' }, database: { url: 'mysql://berth:***@db/berth' } })
  t.strictSame(printed.plugins.extra, { module: './extra.mjs', config: { token: '***', depth: 3 }, enabled: true, onFailure: 'abort' })
  t.strictSame(printed.plugins.off, { module: './off.mjs', enabled: false, onFailure: 'abort' })
})

t.test('a key can have the scopes of the plugins that are enabled, also of a third party\'s', async (t) => {
  const { dataDir } = await bareApp(t)
  const environment = { BERTH_DATA_DIR: dataDir }
  const withNotes = async (enabled: boolean): Promise<string[]> => {
    const file = await fileWith(t, `plugins:\n  notes:\n    module: ./notes.mjs\n    enabled: ${enabled}\n`)
    await writeFile(join(file, '../notes.mjs'), `export const plugin = { manifest: { id: 'notes', provides: [], requires: [], scopes: ['note:read'],
      config: { type: 'object', additionalProperties: false, properties: {} } } }`)
    return ['token', 'create', '--config', file, '--name', 'x', '--scopes', 'note:read,image:read']
  }
  t.match(await berth(await withNotes(true), environment), { code: 0, out: /^berth_/ })
  t.match(await berth(await withNotes(false), environment), { code: 1, error: /note:read is no scope; there are .*image:read/ })
})

t.test('keys are made, used by a running server, listed and revoked', async (t) => {
  const { app, dataDir } = await bareApp(t)
  await app.start({ listen: false })
  const environment = { BERTH_DATA_DIR: dataDir }
  const statusWith = async (key: string): Promise<number> => (await app.http.inject({ url: '/plugins', headers: { authorization: `Bearer ${key}` } })).statusCode

  const made = await berth(['token', 'create', '--name', 'ci', '--scopes', 'resource:read, image:read', '--expires-in', '30d'], environment)
  t.equal(made.code, 0)
  t.match(made.out, /^berth_\S+$/, 'standard output is the key and nothing else')
  t.equal(await statusWith(made.out), 200)
  const other = await berth(['token', 'create', '--name', 'narrow', '--scopes', 'image:read', '--expires-in', '1d12h'], environment)
  t.equal(await statusWith(other.out), 403)

  const listed = await berth(['token', 'list'], environment)
  t.notMatch(listed.out, made.out)
  const row = listed.out.split('\n').find(line => / ci /.test(line)) ?? ''
  t.match(row, /resource:read,image:read +active/)
  const id = row.split(' ')[0] ?? ''
  const days = (Date.parse(/active +\S+ +(\S+)/.exec(row)?.[1] ?? '') - Date.now()) / 86_400_000
  t.ok(days > 29.9 && days <= 30, `expires in ${days} days`)

  t.equal((await berth(['token', 'revoke', id], environment)).out, `key ${id} revoked`)
  t.match((await berth(['token', 'list'], environment)).out, new RegExp(`${id} .* revoked`))
  t.match(await berth(['token', 'revoke', 'nosuch'], environment), { code: 1, error: /nosuch/ })
  t.match(await berth(['token', 'create', '--name', 'x', '--scopes', 'everything'], environment), { code: 1, error: /everything is no scope/ })
})

t.test('names of keys that others chose move no cursor', async (t) => {
  const { app, dataDir } = await bareApp(t)
  await app.start({ listen: false })
  const environment = { BERTH_DATA_DIR: dataDir }
  const name = 'x\u001b]52;c;aGk=\u0007\u001b[2K\nabcdefgh  admin  *  active\u202e'
  t.equal((await app.http.inject({ method: 'POST', url: '/keys', headers: { authorization: `Bearer ${ADMIN_KEY}` }, payload: { name, scopes: ['key:write'] } })).statusCode, 201)
  const { out } = await berth(['token', 'list'], environment)
  t.match(out, 'x\\u001b]52;c;aGk=\\u0007\\u001b[2K\\nabcdefgh  admin  *  active\\u202e')
  t.equal(out.split('\n').length, 3, 'the headings, and one row for each key')
  const { error } = await berth(['token', 'create', '--name', name], environment)
  for (const text of [out, error]) t.notMatch(text.replaceAll('\n', ''), /[\p{Cc}\u202e]/u)
  t.equal(error.split('\n').length, 1)
})
