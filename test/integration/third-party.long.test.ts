// A plugin of somebody else's, from its sources to a running server: examples/plugin-greeter is compiled, tested and packed against the packed server, then both are installed and run, without a registry.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { packageRoot } from '../../core/package-root.ts'

const execute = promisify(execFile)
/** A user's shell: what the npm that runs these tests hands on is left out. */
const shell = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('npm_') && !name.startsWith('BERTH_') && !name.startsWith('TAP') && !name.startsWith('NODE_')))
const KEY = 'an-admin-key-for-tests'
/** what the running of it may cost this test: plugins that need nothing of the host */
const BUILT_IN = ['events', 'webhooks']

let folder: string
t.before(async () => { folder = await mkdtemp(join(tmpdir(), 'berth-third-party-')) })
t.after(async () => { await rm(folder, { recursive: true, force: true }) })

const run = async (at: string, file: string, ...args: readonly string[]): Promise<string> => (await execute(file, args, { cwd: join(folder, at), env: shell }).catch((error: unknown) => {
  const { stdout, stderr } = error as { stdout: string, stderr: string }
  throw new Error(`${file} ${args.join(' ')}: ${stdout}${stderr}`, { cause: error })
})).stdout.trim()
/** npm with an empty cache, that compiles nothing. */
const npm = async (at: string, ...args: readonly string[]): Promise<string> => await run(at, 'npm', ...args, '--loglevel=error', '--no-audit', '--no-fund', '--offline', '--cache', join(folder, 'cache'), '--node-gyp', '/bin/false')

t.test('the packed server is what its author compiles and tests a plugin with', async (t) => {
  const packed = await run('.', process.execPath, join(packageRoot, 'dist/setup/package/server.js'), folder)
  const { size } = await stat(packed)
  t.ok(size < 40_000_000, `${size} bytes`)

  await mkdir(join(folder, 'operator'))
  await writeFile(join(folder, 'operator/package.json'), '{}')
  await npm('operator', 'install', packed)

  // The author's folder, with the plugin in it: the compiler and Node's types are those of this checkout, all else is Berth's package.
  await mkdir(join(folder, 'author'))
  await run('.', 'cp', '-al', 'operator/node_modules', 'author/node_modules')
  for (const name of ['typescript', '@types', 'undici-types']) await symlink(join(packageRoot, 'node_modules', name), join(folder, 'author/node_modules', name))
  await symlink('../typescript/bin/tsc', join(folder, 'author/node_modules/.bin/tsc'))
  await cp(join(packageRoot, 'examples/plugin-greeter'), join(folder, 'author/greeter'), { recursive: true })

  t.match(await run('author/greeter', 'npm', 'test'), /# pass 5\n# fail 0\n/)
  // The compiler of this checkout's build agrees with the one of the plugin, and is quicker.
  const compile = async (): Promise<string> => await run('author/greeter', join(packageRoot, 'node_modules/typescript-native/bin/tsc'), '-p', '.', '--noEmit')
  await compile()

  const manifest = join(folder, 'author/greeter/src/manifest.ts')
  await cp(manifest, `${manifest}.before`)
  for (const [wrong, problem] of [["requires: ['database', 'log', 'server', 'nonsense']", /nonsense/], ["requires: ['database', 'log']", /'server' does not exist/]] as const) {
    await writeFile(manifest, (await readText(`${manifest}.before`)).replace(/requires: \[.*\]/, wrong))
    await t.rejects(compile(), problem, wrong)
  }
  await writeFile(manifest, (await readText(`${manifest}.before`)).replace("'server'],", "'server'],\n  optional: ['eventFeed'],").replace('\n', "\nimport type {} from 'berth/plugins/events'\n"))
  await compile()
  t.pass('services of built-in plugins have their types, too')
  await cp(`${manifest}.before`, manifest)
  await rm(`${manifest}.before`)

  await npm('author/greeter', 'pack', '--pack-destination', folder)
})

t.test('an operator installs the plugin beside the server, and it answers', async (t) => {
  await npm('operator', 'install', '../berth-plugin-greeter-0.1.0.tgz')
  const config = { greeting: 'Good day', most: 2 }
  await configure(config)

  t.test('its configuration is checked with that of the server', async (t) => {
    await configure({ greeting: '', most: 'many', other: 1 })
    const refused = await check()
    t.not(refused.code, 0)
    for (const field of ['greeting', 'most', 'other']) t.match(refused.text, new RegExp(`plugins\\.greeter\\.config\\.${field}`))
    await configure(config)
    t.equal((await check()).code, 0)
    t.match(await berth('print-config', '--config', 'berth.yaml'), /greeting: "?Good day"?\n/)
  })

  t.test('its routes ask for its scopes, its errors have their status, and they are in the document', async (t) => {
    const { call, stop } = await serve(t)
    const { body: plugins } = await call('GET', '/plugins')
    t.strictSame((plugins as ReadonlyArray<{ readonly id: string, readonly state: string }>).filter(({ state }) => state === 'started').map(({ id }) => id), [...BUILT_IN, 'greeter'].sort())
    const keyFor = async (scope: string): Promise<string> => {
      const { status, body } = await call('POST', '/keys', { body: { name: scope.replace(':', '-'), scopes: [scope] } })
      t.equal(status, 201)
      return String(Reflect.get(Object(body), 'key'))
    }
    const [reader, writer] = [await keyFor('greeting:read'), await keyFor('greeting:write')]
    t.match(await call('POST', '/greetings', { key: '', body: { name: 'Ada' } }), { status: 401 })
    t.match(await call('POST', '/greetings', { key: reader, body: { name: 'Ada' } }), { status: 403, body: { message: 'missing required scope: greeting:write' } })
    t.match(await call('POST', '/greetings', { key: writer, body: { name: 'Ada' } }), { status: 201, body: { text: 'Good day, Ada!' } })
    t.match(await call('GET', '/greetings/Ada', { key: writer }), { status: 403 })
    t.match(await call('GET', '/greetings/Ada', { key: reader }), { status: 200, body: { text: 'Good day, Ada!' } })
    t.match(await call('GET', '/greetings/Grace'), { status: 404, body: { code: 'not_found' } })
    t.match(await call('POST', '/greetings', { body: { name: '4' } }), { status: 400, body: { code: 'invalid_request' } })
    await call('POST', '/greetings', { body: { name: 'Grace' } })
    t.match(await call('POST', '/greetings', { body: { name: 'Edsger' } }), { status: 409, body: { code: 'too_many_greeted' } })
    t.match((await call('GET', '/openapi.json')).body, { paths: { '/greetings': { post: { responses: { 201: {}, 409: {} } } }, '/greetings/{name}': { get: {} } } })
    await stop()
  })

  t.test('its table is there when the server comes back, which finds it beside the configuration, where Berth is a link', async (t) => {
    await mkdir(join(folder, 'etc/node_modules'), { recursive: true })
    await run('.', 'cp', '-r', 'operator/node_modules/berth-plugin-greeter', 'etc/node_modules/')
    await run('.', 'cp', 'operator/berth.yaml', 'etc/')
    await symlink(join(folder, 'operator/node_modules/berth'), join(folder, 'etc/node_modules/berth'))
    await rm(join(folder, 'operator/node_modules/berth-plugin-greeter'), { recursive: true })
    const { call, stop } = await serve(t, '../etc/berth.yaml')
    t.match(await call('GET', '/greetings/Ada'), { status: 200, body: { text: 'Good day, Ada!' } })
    t.match(await call('GET', '/greetings/Edsger'), { status: 404, body: { code: 'not_found' } }, 'its errors are known for what they are')
    await stop()
  })
})

async function readText (path: string): Promise<string> {
  return await readFile(path, 'utf8')
}

async function configure (config: unknown): Promise<void> {
  const builtIns = await readdir(join(folder, 'operator/node_modules/berth/dist/plugins'))
  await writeFile(join(folder, 'operator/berth.yaml'), JSON.stringify({
    server: { dataDir: join(folder, 'data'), listen: '127.0.0.1:0', metrics: { enabled: false } },
    plugins: { ...Object.fromEntries(builtIns.filter((id) => !BUILT_IN.includes(id)).map((id) => [id, { enabled: false }])), greeter: { module: 'berth-plugin-greeter', config } }
  }))
}

const berth = async (...args: readonly string[]): Promise<string> => await run('operator', 'node_modules/.bin/berth', ...args)

async function check (): Promise<{ readonly code: number, readonly text: string }> {
  return await execute('node_modules/.bin/berth', ['check-config', '--config', 'berth.yaml'], { cwd: join(folder, 'operator'), env: shell })
    .then(({ stdout }) => ({ code: 0, text: stdout }), ({ code, stdout, stderr }: { code: number, stdout: string, stderr: string }) => ({ code, text: stdout + stderr }))
}

interface Answer { readonly status: number, readonly body: unknown }
interface Running { call (method: string, path: string, request?: { readonly key?: string, readonly body?: unknown }): Promise<Answer>, stop (): Promise<void> }

/** `berth serve`, until `stop` or the end of the test. */
async function serve (t: Test, config = 'berth.yaml'): Promise<Running> {
  const child = spawn('node_modules/.bin/berth', ['serve', '--config', config], { cwd: join(folder, 'operator'), env: { ...shell, BERTH_API_KEY: KEY }, stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM')
    await ended
  }
  t.teardown(stop)
  const lines: string[] = []
  const url = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).on('line', (line) => {
      lines.push(line)
      const { msg, url } = JSON.parse(line) as { msg: string, url?: string }
      if (msg === 'listening' && url !== undefined) resolve(url)
    }).on('close', () => { reject(new Error(`the server ended: ${lines.join('\n')}`)) })
  })
  return {
    stop,
    async call (method, path, { key = KEY, body } = {}) {
      const headers = { ...key === '' ? {} : { authorization: `Bearer ${key}` }, ...body === undefined ? {} : { 'content-type': 'application/json' } }
      const answer = await fetch(`${url}${path}`, { method, headers, ...body === undefined ? {} : { body: JSON.stringify(body) } })
      return { status: answer.status, body: await answer.json() }
    }
  }
}
