// What a form must be, and what a wrong one is told. Nothing of a refused one stays.
import { createHash, randomBytes } from 'node:crypto'
import { readFile, statfs, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { createHostCommands } from '../../../core/process/run.ts'
import { ADMIN_KEY, temporaryFolder } from '../../core/bare-app.ts'
import { withFullDisk } from '../instances/crash-points.ts'
import { encode, SOURCE, startBuilds, until, type BuildsApp, type Fields } from './app.ts'
import { limitMs, mainThreadMs } from '../../helpers/processor-time.ts'
import { withoutMounts } from '../../helpers/rights.ts'

const commands = createHostCommands()
const DIGEST = `sha256:${'ab'.repeat(32)}`

const wrong: readonly [fields: Fields, message: RegExp][] = [
  [{}, /source is required/],
  [{ dockerfile: 'FROM scratch' }, /source is required/],
  [{ source: Buffer.alloc(0) }, /source is empty; it must be a tar archive, compressed with gzip/],
  [{ source: gzipSync(randomBytes(70_000)) }, /source: must be at most 64KB/],
  [{ sauce: 'x' }, /sauce is not a known field; did you mean source\?/],
  [{ cpu: '2' }, /cpu is not a known field; did you mean cpus\?/],
  [{ extra: Buffer.from('file') }, /extra is not a known field/],
  [{ dockerfile: '' }, /dockerfile must have at least 1/],
  [{ dockerfile: 'x'.repeat(2 ** 20 + 1) }, /dockerfile must be at most 1 MB/],
  [{ dockerfile: Buffer.from([0x46, 0xff, 0xfe]) }, /dockerfile must be UTF-8/],
  [{ dockerfile: 'FROM scratch', dockerfile_path: 'Dockerfile' }, /dockerfile_path: cannot be given together/],
  [{ dockerfile_path: '../Dockerfile' }, /dockerfile_path: must be the path/],
  [{ dockerfile_path: '/etc/passwd' }, /dockerfile_path/],
  [{ dockerfile_path: 'a//b' }, /dockerfile_path/],
  [{ dockerfile_path: 'a\nb' }, /dockerfile_path/],
  [{ dockerfile_path: 'x'.repeat(1025) }, /dockerfile_path/],
  [{ base_image_digest: 'latest' }, /base_image_digest must be sha256/],
  [{ base_image_digest: DIGEST.toUpperCase() }, /base_image_digest/],
  [{ cache_scope: 'Team' }, /cache_scope must be a part of a repository name/],
  [{ cache_scope: '../other' }, /cache_scope/],
  [{ cache_scope: 'a'.repeat(129) }, /cache_scope/],
  [{ cache_scope: 'global' }, /cache_scope: must not begin with global/],
  [{ cache_scope: 'global/node' }, /cache_scope: must not begin with global/],
  [{ global_cache_key: 'a b' }, /global_cache_key/],
  [{ is_admin_build: 'yes' }, /is_admin_build must be a boolean/],
  [{ is_admin_build: 'true' }, /is_admin_build: needs global_cache_key/],
  [{ image_name: 'Team/Web' }, /image_name: .*lower case/],
  [{ image_name: 'a b' }, /image_name/],
  [{ image_name: 'http://x/y' }, /image_name/],
  [{ image_name: 'host:5000/web' }, /image_name/],
  [{ image_name: `web@${DIGEST}` }, /image_name: cannot have a digest/],
  [{ image_name: 'cache/web' }, /image_name: must not lie in cache\//],
  [{ image_name: 'builds/web' }, /image_name: must not lie in builds\//],
  [{ image_name: 'berth/builder:latest' }, /image_name: must not lie in berth\//],
  [{ image_name: 'web:' }, /image_name/],
  [{ image_name: 'web:-x' }, /image_name/],
  [{ secrets: 'token' }, /secrets must be JSON/],
  [{ secrets: '{"id":"token"}' }, /secrets must be an array/],
  [{ secrets: '[{"name":"token"}]' }, /secrets\[0\]/],
  [{ secrets: '[{"id":"../passwd"}]' }, /secrets\[0\]\.id must have/],
  [{ secrets: '[{"id":".hidden"}]' }, /secrets\[0\]\.id/],
  [{ secrets: '[{"id":"token"}]' }, /secrets: this server has no secret token/],
  [{ secrets: '[{"id":"token"},{"id":"token"}]' }, /secrets: token is given twice/],
  [{ tags: '[]' }, /tags must be an object/],
  [{ tags: '{' }, /tags must be JSON/],
  [{ tags: '{"a":1}' }, /tags\.a must be/],
  [{ tags: '{"a":"x*"}' }, /tags\.a/],
  [{ 'tags[a*]': 'x' }, /tags has the key "a\*"/],
  [{ tags: '{"a":"b"}', 'tags[c]': 'd' }, /tags is given twice/],
  [{ 'tags[a][b]': 'x' }, /is not a known field/],
  [{ cpus: '0' }, /cpus must be at least 1/],
  [{ cpus: '9' }, /cpus: must be at most 8/],
  [{ cpus: '1.5' }, /cpus must be an integer/],
  [{ cpus: '-1' }, /cpus must be an integer/],
  [{ cpus: 'two' }, /cpus must be an integer/],
  [{ cpus: '' }, /cpus must be an integer/],
  [{ memory_mb: '255' }, /memory_mb must be at least 256/],
  [{ memory_mb: '16385' }, /memory_mb: must be at most 16384/],
  [{ timeout_seconds: '0' }, /timeout_seconds must be at least 1/],
  [{ timeout_seconds: '7201' }, /timeout_seconds: must be at most 7200/],
  [{ network_mode: 'bridge' }, /network_mode must be one of isolated, egress/],
  [{ network_mode: 'isolated', egress_mode: 'all' }, /egress_mode: cannot be given with network_mode isolated/],
  [{ egress_mode: 'some' }, /egress_mode must be one of all, http_https_only/],
  [{ build_args: 'A=1' }, /build_args must be JSON/],
  [{ build_args: '{"1A":"x"}' }, /build_args has the key "1A"/],
  [{ build_args: '{"A":1}' }, /build_args\.A must be a string/],
  [{ 'build_args[A-B]': 'x' }, /build_args has the key "A-B"/],
  [{ target: '' }, /target/],
  [{ target: 'a b' }, /target must be the name or the number of a stage/],
  [{ no_cache: '1' }, /no_cache must be a boolean/]
]

t.test('every wrong field is refused by its name, and leaves nothing', async (t) => {
  const app = await startBuilds(t, { config: { maxSource: '64KB' } })
  for (const [fields, message] of wrong) {
    const isAboutSource = 'source' in fields || Object.keys(fields).length === 0 || message.source.startsWith('source')
    const { status, body } = await app.post({ ...isAboutSource ? {} : { source: SOURCE }, ...fields })
    t.match({ status, body }, { status: 400, body: { code: /^(invalid_request|invalid_name|source_too_large)$/, message } }, JSON.stringify(fields).slice(0, 70))
  }
  t.same(await app.files(), ['uploading'])
  t.equal((await app.call('GET', '/builds')).text, '[]')
  t.same(app.runner.order, [])
})

t.test('what needs something of this server that is not there is refused', async (t) => {
  const app = await startBuilds(t)
  t.match(await app.post({ source: SOURCE, egress_mode: 'all' }), { status: 400, body: { code: 'plugin_disabled', message: /^egress_mode needs the plugin egress/ } })
  t.match(await app.post({ source: SOURCE, network_mode: 'egress' }), { status: 400, body: { code: 'plugin_disabled', message: /^network_mode needs the plugin networking/ } })
  t.match(await app.post({ source: SOURCE, builder_id: 'nobody' }), { status: 404, body: { code: 'not_found', message: /builder nobody/ } })
  t.same(await app.files(), ['uploading'])
})

t.test('a key that is limited to repositories builds nothing that lies outside of them', async (t) => {
  const app = await startBuilds(t)
  const made = await app.app.http.inject({ method: 'POST', url: '/keys', headers: { authorization: `Bearer ${ADMIN_KEY}` }, payload: { name: 'team', scopes: ['build:write', 'build:admin'], repositories: ['localhost/team/*', 'localhost/cache/team'] } })
  const { key }: { key: string } = made.json()
  const post = async (fields: Record<string, string>): Promise<unknown> =>
    (await send(app, rawForm(source, ...Object.entries(fields).map(([name, value]) => [named(name), value] as const)), { authorization: `Bearer ${key}` })).body['message']
  for (const name of ['web', 'teamster/web', 'demo/busybox:latest']) t.match(await post({ image_name: name }), /may not write to the repository localhost/, name)
  t.equal(await post({ image_name: 'team/web', cache_scope: 'other' }), 'this key may not write to the repository localhost/cache/other')
  t.equal(await post({ global_cache_key: 'node', is_admin_build: 'true' }), 'this key may not write to the repository localhost/cache/global/node')
  t.equal(await post({ image_name: 'team/web:1', cache_scope: 'team', global_cache_key: 'node' }), undefined)
  t.equal(await post({}), undefined, 'an image without a name has a repository of its own')
})

interface Raw { readonly body: Buffer, readonly type: string }

/** Parts with headers of one's own. */
function rawForm (...parts: readonly (readonly [headers: string, content: Buffer | string])[]): Raw {
  const pieces = parts.flatMap(([headers, content]) => [Buffer.from(`--cut\r\n${headers}\r\n\r\n`), Buffer.from(content), Buffer.from('\r\n')])
  return { body: Buffer.concat([...pieces, Buffer.from('--cut--\r\n')]), type: 'multipart/form-data; boundary=cut' }
}

async function send ({ app }: BuildsApp, { body, type }: Raw, headers: Record<string, string> = {}): Promise<{ status: number, body: Record<string, unknown> }> {
  const answer = await app.http.inject({ method: 'POST', url: '/builds', headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': type, ...headers }, payload: body })
  return { status: answer.statusCode, body: answer.json() }
}

const named = (name: string): string => `Content-Disposition: form-data; name="${name}"`
const source: readonly [string, Buffer] = [`${named('source')}; filename="s.tgz"\r\nContent-Type: application/gzip`, SOURCE]

t.test('a form that is none, or not whole, is refused with a sentence and leaves nothing', async (t) => {
  const app = await startBuilds(t)
  const whole = rawForm(source, [named('dockerfile'), 'FROM scratch'])
  const bad: readonly [Raw, RegExp][] = [
    [{ body: Buffer.from('{}'), type: 'application/json' }, /must be multipart\/form-data, with the field source/],
    [{ body: SOURCE, type: 'application/gzip' }, /must be multipart\/form-data/],
    [{ body: whole.body, type: 'multipart/form-data' }, /no whole multipart/],
    [{ body: whole.body.subarray(0, whole.body.length - 40), type: whole.type }, /no whole multipart/],
    [{ body: whole.body.subarray(0, 120), type: whole.type }, /no whole multipart/],
    [{ body: Buffer.from('nothing of the kind'), type: whole.type }, /no whole multipart|source is required/],
    [rawForm(source, source), /source is given twice/],
    [rawForm(source, [named('target'), 'a'], [named('target'), 'b']), /target is given twice/],
    [rawForm(source, [named('__proto__'), 'a']), /a name that is not allowed/],
    [rawForm(source, ['Content-Disposition: form-data', 'a']), /without a name/],
    [rawForm(source, ...Array.from({ length: 301 }, (_, index) => [named(`tags[k${index}]`), 'v'] as const)), /at most 300 fields/],
    [rawForm(source, ...Array.from({ length: 5 }, (_, index) => [named(`tags[k${index}]`), 'v'.repeat(2 ** 20 - 10)] as const)), /at most 4 MB together/]
  ]
  for (const [form, message] of bad) t.match(await send(app, form), { status: 400, body: { code: 'invalid_request', message } }, String(message))
  const empty = await app.app.http.inject({ method: 'POST', url: '/builds', headers: { authorization: `Bearer ${ADMIN_KEY}` } })
  t.match({ status: empty.statusCode, body: empty.json() }, { status: 400, body: { code: 'invalid_request' } })
  t.same(await app.files(), ['uploading'])
})

t.test('the values in a form are as many as in a body of JSON at most, so that nobody waits while it is refused', async (t) => {
  const app = await startBuilds(t)
  const list = `[${'0,'.repeat(500_000)}0]`
  const fields = `{${Array.from({ length: 80_000 }, (_, at) => `"k${at}":0`).join(',')}}`
  const few = `{${Array.from({ length: 15_000 }, (_, at) => `"k${at}":0`).join(',')}}`
  const limit = limitMs()
  for (const [form, message] of [
    [rawForm(source, [named('secrets'), list], [named('tags'), fields], [named('build_args'), fields]), /^secrets has more than 20000 fields and items/],
    [rawForm(source, [named('tags'), fields], [named('secrets'), list], [named('build_args'), fields]), /^tags has more than 20000 fields and items/],
    [rawForm(source, ...['tags', 'build_args'].map((name) => [named(name), few] as const)), /^the request body has more than 20000 fields and items/],
    [rawForm(source, [named('secrets'), '['.repeat(500_000) + ']'.repeat(500_000)]), /nested more than 32 levels deep/]
  ] as const) {
    const start = mainThreadMs()
    t.match(await send(app, form), { status: 400, body: { code: 'invalid_request', message } })
    const took = mainThreadMs() - start
    t.ok(took < limit, `${took} ms of ${limit}`)
  }
  t.same(await app.files(), ['uploading'])
})

t.test('fields are what they are, whether a client sends them as files or as texts', async (t) => {
  const app = await startBuilds(t)
  const form = rawForm([named('source'), SOURCE], [`${named('dockerfile')}; filename="Dockerfile"\r\nContent-Type: application/octet-stream`, 'FROM scratch'], [`${named('tags')}\r\nContent-Type: application/json`, '{"team":"a"}'])
  const { status, body } = await send(app, form)
  t.match({ status, body }, { status: 202, body: { status: 'building', tags: { team: 'a' } } })
  t.match((await app.runner.begun(String(body['id']))).job, { dockerfile: 'FROM scratch' })
})

t.test('everything that was asked reaches whoever does the build, and the source as it was sent', async (t) => {
  const app = await startBuilds(t, { config: { maxVcpus: 4 } })
  const bytes = gzipSync(randomBytes(3_000_000))
  const id = await app.build({
    dockerfile_path: './docker/Dockerfile', base_image_digest: DIGEST, cache_scope: 'team/app', global_cache_key: 'node', is_admin_build: 'true', image_name: 'team/web:1.2',
    tags: '{"team":"backend"}', cpus: '4', memory_mb: '512', timeout_seconds: '77', network_mode: 'isolated', build_args: '{"A":"1","B":"zwei \u00fc"}', target: 'run', no_cache: 'true', source: bytes
  })
  const { job } = await app.runner.begun(id)
  const { sourcePath, ...rest } = job
  t.same(JSON.parse(JSON.stringify({ ...rest, secrets: [...rest.secrets] })), {
    id, dockerfilePath: 'docker/Dockerfile', buildArgs: { A: '1', B: 'zwei \u00fc' }, target: 'run', noCache: true, secrets: [], cacheScope: 'team/app', globalCacheKey: 'node', writesGlobalCache: true,
    baseImageDigest: DIGEST, imageName: 'team/web:1.2', readsRegistry: true, vcpus: 4, memoryBytes: 512 * 2 ** 20, network: { mode: 'isolated' }
  })
  t.equal(sourcePath, join(app.dataDir, 'builds', id, 'source.tar.gz'))
  t.ok((await readFile(sourcePath)).equals(bytes))
  t.match(await app.get(id), { provenance: { source_hash: createHash('sha256').update(bytes).digest('hex') }, tags: { team: 'backend' } })
  const plain = (await app.runner.begun(await app.build({ 'tags[a]': 'b', 'build_args[X]': 'y' }))).job
  t.match(plain, { vcpus: 2, memoryBytes: 2 ** 31, noCache: false, buildArgs: { X: 'y' }, writesGlobalCache: false, network: { mode: 'isolated' } }, 'this server has no network for VMs')
  t.equal(plain.imageName, undefined)
})

t.test('an upload whose sender goes away leaves nothing', async (t) => {
  const app = await startBuilds(t, { listen: true })
  const { port } = new URL(app.app.address())
  const socket = connect(Number(port), '127.0.0.1')
  socket.write(`POST /builds HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${ADMIN_KEY}\r\nContent-Type: multipart/form-data; boundary=cut\r\nContent-Length: 1000000\r\n\r\n`)
  socket.write(`--cut\r\n${source[0]}\r\n\r\n`)
  socket.write(Buffer.concat([SOURCE, randomBytes(100_000)]))
  await until(async () => (await app.files()).some((name) => name.endsWith('source.tar.gz')))
  socket.destroy()
  await until(async () => (await app.files()).length === 1)
  t.same(await app.files(), ['uploading'])
})

t.test('a sender of too much hears why, though it has not sent all of it', async (t) => {
  const app = await startBuilds(t, { listen: true, config: { maxSource: '1MB' } })
  const { body, type } = await encode({ source: gzipSync(randomBytes(5_000_000)) })
  const answer = await fetch(`${app.app.address()}/builds`, { method: 'POST', headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': type }, body: new Uint8Array(body) })
  t.equal(answer.status, 400)
  t.match(await answer.json(), { code: 'source_too_large', message: 'source: must be at most 1MB' })
  t.same(await app.files(), ['uploading'])
})

t.test('the same form with an idempotency key makes one build, and another form with it is refused', async (t) => {
  const app = await startBuilds(t)
  const headers = { 'idempotency-key': 'k1' }
  const first = await app.post({ source: SOURCE, target: 'a' }, headers)
  const second = await app.post({ source: SOURCE, target: 'a' }, headers)
  t.equal(first.status, 202)
  t.match(second, { status: 202, body: { id: first.body['id'] }, headers: { 'idempotent-replayed': 'true' } })
  t.match(await app.post({ source: SOURCE, target: 'b' }, headers), { status: 409, body: { code: 'idempotency_key_reused' } })
  t.match(await app.post({ source: gzipSync('other'), target: 'a' }, headers), { status: 409, body: { code: 'idempotency_key_reused' } })
  t.equal(JSON.parse((await app.call('GET', '/builds')).text).length, 1)
  t.same((await app.files()).filter((name) => name.startsWith('uploading')), ['uploading'])
})

t.test('a key has no more builds than its share, of which those that run are a part; nothing of a refused source is read', async (t) => {
  const app = await startBuilds(t, { config: { concurrency: 1, maxPerKey: 2 } })
  const ids = [await app.build(), await app.build()]
  t.match(await app.post({ source: SOURCE }), { status: 429, body: { code: 'too_many_builds', message: /^the key ".+" has 2 builds that are not over/ } })
  t.same((await app.files()).filter((name) => name.startsWith('uploading')), ['uploading'])
  await app.call('DELETE', `/builds/${ids[1] ?? ''}`)
  t.equal((await app.post({ source: SOURCE })).status, 202)
})

t.test('a queue that is full takes no more, and clients are told to try again', async (t) => {
  const app = await startBuilds(t, { config: { concurrency: 1, maxQueued: 2 } })
  const ids = [await app.build(), await app.build(), await app.build()]
  t.match(await app.post({ source: SOURCE }), { status: 429, body: { code: 'too_many_builds' } })
  await app.call('DELETE', `/builds/${ids[1] ?? ''}`)
  t.equal((await app.post({ source: SOURCE })).status, 202)
})

t.test('a full disk is told, and leaves nothing', async (t) => {
  const app = await startBuilds(t)
  for (let n = 0; ; n++) {
    let answer = { status: 0 }
    const step = await withFullDisk(app.dataDir, n, async () => { answer = await app.post({ source: SOURCE }) })
    if (step === undefined) {
      t.ok(n >= 4, `${n} steps`)
      t.equal(answer.status, 202)
      break
    }
    t.match(answer, { status: 409, body: { code: 'insufficient_resources', message: /disk of the data folder is full/ } }, step)
    t.same(await app.files(), ['uploading'], step)
    t.equal((await app.call('GET', '/builds')).text, '[]')
  }
})

t.test('a source that would leave too little of the disk is refused, and nothing of it stays', { skip: withoutMounts }, async (t) => {
  const dataDir = await temporaryFolder(t)
  await commands.run('mount', ['-t', 'tmpfs', '-o', 'size=100m,mode=711', 'tmpfs', dataDir])
  t.teardown(() => commands.run('umount', ['-l', dataDir]))
  const app = await startBuilds(t, { dataDir, config: { maxSource: '90MB' } })
  const free = async (): Promise<number> => {
    const { bavail, bsize } = await statfs(dataDir)
    return bavail * bsize
  }
  await writeFile(join(dataDir, 'filler'), Buffer.alloc(await free() - 20 * 2 ** 20))
  const before = await free()
  t.match(await app.post({ source: gzipSync(randomBytes(50 * 2 ** 20), { level: 0 }) }), { status: 409, body: { code: 'insufficient_resources', message: /the disk of the data folder is full/ } })
  t.same(await app.files(), ['uploading'])
  t.ok(await free() >= before - 2 ** 20, 'its space is free again')
  await app.app.stop()
})
