// The API's document: of every route that there is, what generators need, and nothing that a standard linter complains of.
import { chmod } from 'node:fs/promises'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { Linter } from 'eslint'
import * as regexp from 'eslint-plugin-regexp'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { buildApp } from '../../../core/app.ts'
import { compileAll } from '../../../core/http/compile-once.ts'
import { API_VERSION } from '../../../core/version.ts'
import { DELETED, withoutDeleted } from '../../../setup/structure/deleted.ts'
import { testFolder } from '../../helpers/folder.ts'

interface Parameter { readonly in: string, readonly name: string, readonly style?: string, readonly explode?: boolean }
interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly tags: readonly string[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly required?: boolean, readonly content: Readonly<Record<string, unknown>> }
  readonly responses: Readonly<Record<string, { readonly description: string, readonly headers?: Readonly<Record<string, unknown>>, readonly content?: Readonly<Record<string, unknown>> }>>
}
interface Document {
  readonly info: { readonly version: string }
  readonly servers: readonly unknown[]
  readonly tags: ReadonlyArray<{ readonly name: string }>
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

/** The server's own plugins, as they come up on this host, with the routes that they mounted. */
async function start (t: Test): Promise<{ readonly routes: string[], get (url: string): Promise<{ readonly body: string, readonly type: string }> }> {
  const dataDir = testFolder(t)
  await chmod(dataDir, 0o711)
  const app = await buildApp({
    log: { level: 'silent' },
    server: { dataDir, listen: '127.0.0.1:0', metrics: { enabled: false, listen: '127.0.0.1:0' } },
    plugins: withoutDeleted({ networking: { enabled: false }, guest: { config: { prepare: false } }, builds: { config: { prepare: false } }, instances: { config: { templates: { enabled: false } } } })
  }, { environment: {}, folder: dataDir })
  const routes: string[] = []
  app.http.addHook('onRoute', ({ method, url, schema, config }) => {
    if (schema?.['hide'] === true || url.startsWith('/docs')) return
    for (const one of [method].flat()) if (one !== 'HEAD' && one !== 'OPTIONS') routes.push(`${one} ${(config?.documentedAs ?? url).replaceAll(/:(\w+)/g, '{$1}')}`)
  })
  t.teardown(async () => { await app.stop() })
  await app.start({ listen: false })
  return {
    routes,
    async get (url) {
      const { statusCode, body, headers } = await app.http.inject({ url })
      if (statusCode !== 200) throw new Error(`${url}: ${statusCode}`)
      return { body, type: String(headers['content-type']) }
    }
  }
}

/** All patterns of schemas, each once. */
function patternsIn (value: unknown, found = new Set<string>()): Set<string> {
  if (typeof value !== 'object' || value === null) return found
  for (const [key, inner] of Object.entries(value)) {
    if (key === 'pattern' && typeof inner === 'string') found.add(inner)
    else if (key === 'patternProperties' && typeof inner === 'object') for (const pattern of Object.keys(inner ?? {})) found.add(pattern)
    patternsIn(inner, found)
  }
  return found
}

t.test('the document', async (t) => {
  const { routes, get } = await start(t)
  const { body } = await get('/openapi.json')
  const document: Document = JSON.parse(body)
  const operations = Object.entries(document.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => ({ name: `${method.toUpperCase()} ${path}`, ...operation })))

  await t.test('has every route that there is, and no other', async (t) => {
    t.same(operations.map(({ name }) => name).sort(), [...new Set(routes)].sort())
    t.ok(operations.length > (DELETED.length === 0 ? 50 : 25), `${operations.length} operations`)
  })

  await t.test('is made of schemas that all compile', async (t) => { t.doesNotThrow(compileAll) })

  await t.test('is the same at each address, and states the API\'s version', async (t) => {
    t.equal((await get('/spec.json')).body, body)
    const yaml = await get('/spec.yaml')
    t.match(yaml.type, /^application\/yaml/)
    t.same(parse(yaml.body), JSON.parse(body))
    t.equal(document.info.version, API_VERSION)
    t.equal(document.servers.length, 1)
  })

  await t.test('has the groups of the plugins that run, in the order in which people read them', async (t) => {
    const order = ['instances', 'ports', 'snapshots', 'images', 'builds', 'builders', 'volumes', 'devices', 'ingresses', 'pushes', 'events', 'webhooks', 'resources', 'host', 'keys', 'server']
    const names = document.tags.map(({ name }) => name)
    t.same(names, order.filter((name) => names.includes(name)))
    t.ok(['instances', 'images', 'keys', 'server'].every((name) => names.includes(name)), names.join())
  })

  await t.test('names each operation once, in words that methods can be made of', async (t) => {
    const ids = operations.map(({ operationId }) => operationId)
    t.equal(new Set(ids).size, ids.length, ids.filter((id, index) => ids.indexOf(id) !== index).join())
    for (const { name, operationId, summary, description, tags } of operations) {
      t.match(operationId, /^[a-z][A-Za-z]+$/, name)
      t.match(summary, /^[A-Z][A-Za-z, ]+$/, name)
      t.ok(description !== '', name)
      t.ok(tags.every((tag) => document.tags.some(({ name: known }) => known === tag)), `${name}: ${tags.join()}`)
    }
    const expected = withoutDeleted({ instances: ['createInstance', 'stopInstance'], snapshots: ['listSnapshots', 'restoreInstanceSnapshot'], volumes: ['createVolumeFromArchive'], images: ['tagImage'], core: ['getHealth'] })
    t.same(Object.values(expected).flat().filter((id) => !ids.includes(id)), [], 'as people would call them')
  })

  await t.test('says how tags are filtered by, what images are called, and what may be sent again', async (t) => {
    const list = document.paths['/instances']?.['get']
    t.match(list?.parameters?.find(({ name }) => name === 'tags'), { in: 'query', style: 'deepObject', explode: true })
    t.ok(list?.responses['200']?.headers?.['Link'])
    t.ok(list?.responses['200']?.headers?.['X-Request-Id'])
    t.ok(list?.responses['200']?.headers?.['ETag'])
    t.match(list?.parameters?.filter(({ in: place }) => place === 'header'), [{ name: 'If-None-Match' }])
    t.match(list?.responses['304'], { headers: { ETag: {} }, content: undefined })
    for (const { name, responses } of operations) t.equal('304' in responses, 'ETag' in (responses['200']?.headers ?? {}), `${name}: 304 where a read has a version`)
    const change = document.paths['/instances/{id}']?.['patch']
    t.match(change?.parameters?.filter(({ in: place }) => place === 'header'), [{ name: 'If-Match' }])
    t.ok(change?.responses['412']?.headers?.['ETag'])
    t.notOk(document.paths['/instances/{id}/volumes/{volumeId}']?.['delete']?.responses['412'], 'nothing reads it')
    t.match(document.paths['/images/{name}']?.['get']?.parameters?.filter(({ in: place }) => place === 'path'), [{ in: 'path', name: 'name' }])
    t.match(document.paths['/images/{name}/tag']?.['post']?.operationId, 'tagImage')
    t.notMatch(Object.keys(document.paths).join(), /\*/)
    t.ok(document.paths['/instances']?.['post']?.parameters?.some(({ in: place, name }) => place === 'header' && name === 'Idempotency-Key'))
    const { responses = {} } = document.paths['/instances']?.['post'] ?? {}
    t.ok(['409', '429', '503'].every((status) => responses[status]?.headers?.['Retry-After'] !== undefined), 'when it may be sent again')
    t.same(Object.entries(responses).filter(([, { headers = {} }]) => 'Idempotent-Replayed' in headers).map(([status]) => status), ['201'])
  })

  await t.test('tells streams, uploads and WebSockets from JSON', async (t) => {
    for (const path of Object.values(withoutDeleted({ instances: '/instances/{id}/logs', builds: '/builds/{id}/events' }))) t.same(Object.keys(document.paths[path]?.['get']?.responses['200']?.content ?? {}), ['text/event-stream'], path)
    for (const path of ['/instances/{id}/exec', '/instances/{id}/cp', '/instances/{id}/forward']) t.ok(document.paths[path]?.['get']?.responses['101'], path)
    for (const [path, type] of Object.values(withoutDeleted({ volumes: ['/volumes/from-archive', 'application/gzip'], builds: ['/builds', 'multipart/form-data'] } as const))) t.ok(document.paths[path]?.['post']?.requestBody?.content[type], path)
    for (const path of Object.values(withoutDeleted({ builds: '/builders' }))) t.equal(document.paths[path]?.['post']?.requestBody?.required, false, `${path}: a body may be left out`)
  })

  await t.test('shows an example of each JSON body that is sent, and that comes with success', async (t) => {
    let examples = 0
    for (const { name, requestBody, responses } of operations) {
      const bodies = [requestBody?.content, ...Object.entries(responses).filter(([status]) => status.startsWith('2')).map(([, { content }]) => content)]
      for (const content of bodies) {
        const media = content?.['application/json']
        if (media === undefined) continue
        // The linter, below, holds each against its schema.
        t.ok(typeof media === 'object' && media !== null && 'example' in media && media.example !== undefined, name)
        examples++
      }
    }
    t.ok(examples > (DELETED.length === 0 ? 60 : 30), `${examples} examples`)
    t.match(document.paths['/instances']?.['post']?.requestBody?.content['application/json'], { example: { name: 'web', image: /:/ } })
  })

  await t.test('has no pattern that a text can make slow', async (t) => {
    // The rules of the lint, which does not see what stands in a string.
    const config = { plugins: { regexp }, rules: { 'regexp/no-super-linear-backtracking': ['error', { report: 'potential' }], 'regexp/no-super-linear-move': 'error' } } satisfies Linter.Config
    const linter = new Linter()
    const patterns = [...patternsIn(document)]
    t.ok(patterns.length > (DELETED.length === 0 ? 10 : 1), `${patterns.length} patterns`)
    for (const pattern of patterns) t.same(linter.verify(`RegExp(${JSON.stringify(pattern)}, 'u')`, config).map(({ message }) => message), [], pattern)
    t.equal(linter.verify("RegExp('^(a+)+$', 'u')", config).length, 1, 'one that can be made slow is found')
  })

  await t.test('names the codes of each error, also of those that come from plugins behind the one that answers', async (t) => {
    for (const { name, responses } of operations) {
      for (const [status, { description, content }] of Object.entries(responses).filter(([status]) => Number(status) >= 400)) {
        const codes = Object.keys((content?.['application/json'] as { readonly examples?: object } | undefined)?.examples ?? {})
        if (codes.length === 0 || codes.some((code) => !description.includes(`\`${code}\``))) t.fail(`${name} ${status}: ${description}`)
      }
      t.ok(['400', '500', '503'].every((status) => status in responses), name)
    }
    const errorsOf = (wanted: string, status: string) => operations.find(({ name }) => name === wanted)?.responses[status]?.description
    t.match(errorsOf('GET /instances/{id}', '404'), /^Not Found: `not_found`$/)
    t.match(errorsOf('PATCH /webhooks/{id}', '412'), /`precondition_failed`/)
    t.match(errorsOf('POST /instances', '503'), /`kernel_unavailable`/, 'of the guest\'s kernel')
    if (!DELETED.includes('volumes')) {
      t.match(errorsOf('POST /volumes', '409'), /`idempotency_in_progress`.*`name_conflict`/)
      t.match(errorsOf('POST /instances', '409'), /`volume_in_use`/, 'of the volumes that it is to have')
    }
    if (!DELETED.includes('snapshots')) t.match(errorsOf('POST /snapshots/{snapshotId}/fork', '404'), /`not_found`/)
    t.notMatch(errorsOf('GET /instances', '400'), /volume/)
    t.match(errorsOf('GET /images', '400'), /`invalid_name`/, 'of the name that is looked for')
  })

  await t.test('is clean by the linter\'s recommended rules', async (t) => {
    const config = await createConfig({
      extends: ['recommended'],
      rules: {
        // The program is not published, and has no licence to name.
        'info-license': 'off',
        'no-invalid-media-type-examples': 'error',
        // Clients know `/devices/available` beside `/devices/{id}`; the router takes the fixed one first.
        'no-ambiguous-paths': 'off'
      }
    })
    const problems = await lintFromString({ source: body, absoluteRef: 'openapi.json', config })
    const found = problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} at ${location.map(({ pointer }) => String(pointer)).join()}`)
    // A WebSocket's answer is 101, which the rule does not know.
    t.same(found.filter((problem) => !/^operation-2xx-response: .*~1(?:exec|cp|forward)\/get/.test(problem)), [])
  })
})
