// What buildah is told of registries, and where its store keeps an image.
import t from 'tap'
import { distrustOf } from '../../../../plugins/builds/builder-vm/build-vm.ts'
import { buildArguments } from '../../../../plugins/builds/builder-vm/buildah-arguments.ts'
import { fullNames } from '../../../../plugins/builds/builder-vm/image-records.ts'
import { cachesOf, grantOf, targetOf } from '../../../../plugins/builds/builder-vm/image-target.ts'
import { registriesConf } from '../../../../plugins/builds/builder-vm/registries.ts'

const NAMES = ['127.0.0.1:8080', 'localhost:8080', 'localhost', 'berth.example']

t.test('every name of the server leads to the guest\'s own loopback, and Docker\'s registry is asked for there first', async (t) => {
  const text = registriesConf({ port: 8080, names: NAMES, isReadable: true })
  for (const name of NAMES) t.match(text, `[[registry]]\nprefix = "${name}"\nlocation = "127.0.0.1:8080"\ninsecure = true\n`)
  t.match(text, 'unqualified-search-registries = ["127.0.0.1:8080", "docker.io"]\n')
  t.match(text, '[[registry.mirror]]\nlocation = "127.0.0.1:8080/docker.io"\n')
})

t.test('a build that may not read the registry is not sent there for names that do not ask for it', async (t) => {
  const text = registriesConf({ port: 8080, names: NAMES, isReadable: false })
  t.match(text, 'unqualified-search-registries = ["docker.io"]\n')
  t.notMatch(text, 'mirror')
})

t.test('names are found in the store as buildah keeps them', async (t) => {
  const searched = ['127.0.0.1:8080', 'docker.io']
  const digest = `sha256:${'a'.repeat(64)}`
  t.same(fullNames('base', searched), ['127.0.0.1:8080/base:latest', 'docker.io/library/base:latest'])
  t.same(fullNames('team/base:1', searched), ['127.0.0.1:8080/team/base:1', 'docker.io/team/base:1'])
  t.same(fullNames('localhost/base', searched), ['localhost/base:latest'])
  t.same(fullNames('localhost:8080/base', searched), ['localhost:8080/base:latest'])
  t.same(fullNames('docker.io/alpine:3', searched), ['docker.io/library/alpine:3'])
  t.same(fullNames(`ghcr.io/a/b:1@${digest}`, searched), [`ghcr.io/a/b@${digest}`])
})

t.test('an image goes to the name that is asked for, or to one of the build\'s own', async (t) => {
  t.same(targetOf({ id: 'b1' }), { repository: 'builds/b1', tag: 'latest' })
  t.same(targetOf({ id: 'b1', imageName: 'team/app' }), { repository: 'team/app', tag: 'latest' })
  t.same(targetOf({ id: 'b1', imageName: 'team/app:v2' }), { repository: 'team/app', tag: 'v2' })
})

t.test('a build may write its own image and cache and nothing else, and reads no more than its key does', async (t) => {
  const job = { id: 'b1', cacheScope: 'team', globalCacheKey: 'node', writesGlobalCache: false, readsRegistry: false }
  t.same(grantOf(job, targetOf(job), cachesOf(job)), { read: ['cache/team', 'cache/global/node'], write: ['builds/b1', 'cache/team'], quiet: ['cache/team'] })
  t.same(grantOf({ readsRegistry: true }, targetOf(job), { read: [], write: undefined }), { read: 'all', write: ['builds/b1'], quiet: [] })
  t.same(cachesOf({ globalCacheKey: 'node', writesGlobalCache: false }), { read: ['cache/global/node'], write: undefined })
})

t.test('a build that fills a shared cache uses nothing that builds of other keys could have written', async (t) => {
  const job = { id: 'b1', cacheScope: 'team', globalCacheKey: 'node', writesGlobalCache: true, readsRegistry: false }
  t.same(cachesOf(job), { read: ['cache/global/node'], write: 'cache/global/node' })
  t.same(grantOf(job, targetOf(job), cachesOf(job)), { read: ['cache/global/node'], write: ['builds/b1', 'cache/global/node'], quiet: ['cache/global/node'] })
  t.match(distrustOf(job), /fills a shared cache/, 'the disk of a builder')
  t.equal(distrustOf({ ...job, writesGlobalCache: false }), undefined)
  t.match(distrustOf({ ...job, writesGlobalCache: false, baseImageDigest: 'sha256:1' }), /may not read/)
})

t.test('a build that may not read the registry takes no base image from a builder\'s disk: another key\'s build may have left it there', async (t) => {
  const plan = { dockerfile: '/d', secrets: new Map<string, string>(), hasBases: false, volumes: [], runtime: '/r' }
  const pull = (job: { readonly readsRegistry: boolean, readonly cacheVolumeId?: string }, hasBases = false): string | undefined =>
    buildArguments({ ...plan, hasBases, job: { buildArgs: {}, noCache: false, ...job } }).find((each) => each.startsWith('--pull'))
  t.equal(pull({ readsRegistry: false, cacheVolumeId: 'cache-1' }), '--pull=always')
  t.equal(pull({ readsRegistry: true, cacheVolumeId: 'cache-1' }), '--pull=true')
  t.equal(pull({ readsRegistry: false }), '--pull=true', 'its disk has nothing of others')
  t.equal(pull({ readsRegistry: false, cacheVolumeId: 'cache-1' }, true), '--pull=false', 'the images are those that were checked')
})
