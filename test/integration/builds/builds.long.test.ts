// Builds in real machines, from the upload to an instance that runs what came of it, and what they leave behind.
import t, { type Test } from 'tap'
import { createMachine, runToEnd } from '../../helpers/machine.ts'
import { shareOfCommit } from '../../../setup/test/share-of-commit.ts'
import { archive, cc, sha256, startScene, submit, type Built } from './scene.ts'
import { diskFiles, placesOf } from './search.ts'

const TOKEN = 'a-secret-of-builds-8d1f0c'
// A marker that is no secret: the search for secrets must find it, or it finds nothing at all.
const MARKER = 'greetings-from-a-build-51e7'
const HELLO = '#include <stdio.h>\nint main(void) { puts(GREETING); return 0; }\n'
const TWO_STAGES = [
  'ARG BASE=bases/tcc', 'FROM ${BASE} AS build', 'ARG GREETING=none', 'RUN --mount=type=secret,id=token sha256sum /run/secrets/token && cat /run/secrets/token',
  'COPY . /src/', `RUN test ! -e /src/ignored.txt && echo "$GREETING" > /marker && ${cc('-DGREETING="\\"$GREETING\\"" -o /hello /src/hello.c')}`,
  'FROM scratch', 'COPY --from=build /hello /hello', 'CMD ["/hello"]', ''
].join('\n')
const PROGRAM = { Dockerfile: TWO_STAGES, 'hello.c': HELLO, 'ignored.txt': 'x', '.dockerignore': 'ignored.txt\n', 'web/package-lock.json': '{}\n', 'node_modules/a/yarn.lock': 'not ours' }
const isolated = { network_mode: 'isolated' }
const onBuilder = { ...isolated, builder_id: 'cached' }
const withToken = { secrets: '[{"id":"token"}]', build_args: JSON.stringify({ GREETING: MARKER }) }

t.setTimeout(1_500_000)
const scene = await startScene(t, { token: `${TOKEN}\n` })
const { server } = scene
await server.api.call('POST', '/builders', { id: 'cached' })
/** how long a build took whose first step failed */
let failedAfterSeconds = 0

type Case = (t: Test) => Promise<void>
/** those of another commit are others: each is a build or more of its own */
const further: ReadonlyArray<readonly [string, Case]> = [
  ['a stage, a Dockerfile beside the source, no cache, and what the base image must be are respected', respects],
  ['a cache of layers serves a build on another disk, and is no image', sharesLayers],
  ['sources and base images that are not there are told', tellsWhatIsMissing],
  ['a step that wants too much memory is told how much there was', outOfMemory],
  ['a build that takes too long ends, and says where it was', timesOut],
  ['a server that is killed during a build removes its machine at the next start, and does not trust the disk that it wrote to', killed]
]
const tests: Readonly<Record<string, Case>> = {
  'a program is compiled in one stage, copied to the next one, and runs in an instance': compiles,
  'the same once more takes every step from the disk of its builder': usesCache,
  'a step that fails is told with its last lines, and without the secret in them': failingStep,
  'the secret is on no disk and in no log, registry, cache or database': noSecret,
  ...Object.fromEntries(shareOfCommit(further, 3)),
  'nothing is left of all of them but the disk of the builder': nothingLeft
}
for (const [name, run] of Object.entries(tests)) await t.test(name, { timeout: 900_000 }, run)

function ready (t: Test, build: Built): void {
  t.equal(build.status, 'ready', build.error ?? '')
}

async function compiles (t: Test): Promise<void> {
  const build = await scene.build(PROGRAM, { ...onBuilder, ...withToken, image_name: 'team/hello:v1' })
  ready(t, build)
  t.equal(build.image_ref, 'localhost/team/hello:v1')
  t.same({ ...build.provenance, timestamp: undefined }, {
    base_image_digest: scene.baseDigest,
    source_hash: sha256(archive(PROGRAM)),
    lockfile_hashes: { 'web/package-lock.json': sha256('{}\n') },
    builder: 'buildah',
    builder_version: build.provenance['builder_version'],
    timestamp: undefined
  })
  t.match(build.provenance['builder_version'], /^\d+\.\d+/)
  const manifest = await fetch(`${server.url}/v2/team/hello/manifests/v1`, { method: 'HEAD', headers: { authorization: `Bearer ${server.key}`, accept: 'application/vnd.docker.distribution.manifest.v2+json' } })
  t.equal(manifest.headers.get('docker-content-digest'), build.image_digest, 'the digest is the registry\'s')
  t.ok(build.lines.some((line) => line.startsWith(sha256(`${TOKEN}\n`))), 'the step has seen the secret')
  t.ok(build.lines.includes('***'), 'and what it printed of it is masked')
  t.notOk(build.lines.some((line) => line.startsWith('--> Using cache')))
  const { output } = await runToEnd(server, await createMachine(server, build.image_ref ?? ''))
  t.same(output, [MARKER], 'an instance runs it')
}

async function usesCache (t: Test): Promise<void> {
  const build = await scene.build(PROGRAM, { ...onBuilder, ...withToken })
  ready(t, build)
  const steps = build.lines.filter((line) => /STEP \d+\/\d+: (?!FROM)/.test(line)).length
  t.ok(steps >= 6)
  t.equal(build.lines.filter((line) => line.startsWith('--> Using cache')).length, steps, 'each of them')
  t.equal(build.image_ref, `localhost/builds/${build.id}:latest`)
}

async function failingStep (t: Test): Promise<void> {
  const Dockerfile = 'FROM bases/tcc\nRUN --mount=type=secret,id=token cp /run/secrets/token /dev/shm/t && cat /dev/shm/t && echo this is the reason >&2 && exit 7\n'
  const began = performance.now()
  const build = await scene.build({ Dockerfile }, { ...onBuilder, ...withToken })
  failedAfterSeconds = (performance.now() - began) / 1000
  t.equal(build.status, 'failed')
  t.match(build.error, /^the build failed: building at STEP "RUN .* exit status 7\n/)
  t.match(build.error, 'this is the reason')
  t.match(build.error, '***')
  t.notMatch(build.error, TOKEN)
}

async function noSecret (t: Test): Promise<void> {
  t.ok((await placesOf(server, MARKER)).some((path) => path.startsWith('data/volumes/')), 'the search finds what there is on the disk of the builder')
  t.same(await placesOf(server, TOKEN), [])
}

async function respects (t: Test): Promise<void> {
  const dockerfile = 'FROM bases/tcc AS one\nRUN echo first\nCMD ["/bin/echo", "of one"]\nFROM one\nRUN exit 1\n'
  const fields = { ...onBuilder, dockerfile, target: 'one', base_image_digest: scene.baseDigest }
  ready(t, await scene.build({ Dockerfile: 'FROM not-this-one' }, fields))
  const anew = await scene.build({ Dockerfile: 'FROM not-this-one' }, { ...fields, no_cache: 'true' })
  ready(t, anew)
  t.ok(anew.lines.includes('first'), 'its step ran again')
  const { output } = await runToEnd(server, await createMachine(server, anew.image_ref ?? ''))
  t.same(output, ['of one'])
  const other = `sha256:${'0'.repeat(64)}`
  const wrong = await scene.build({ a: '' }, { ...fields, base_image_digest: other })
  t.equal(wrong.status, 'failed')
  t.match(wrong.error, `base_image_digest: the base image bases/tcc must be ${other}, and is ${scene.baseDigest}`)
  t.notOk(wrong.lines.some((line) => line.includes('RUN')), 'before any step')
}

async function sharesLayers (t: Test): Promise<void> {
  const source = { Dockerfile: 'FROM localhost/bases/tcc\nCOPY a /a\nRUN echo layer > /layer\n', a: 'a' }
  ready(t, await scene.build(source, { ...isolated, cache_scope: 'team' }))
  const second = await scene.build(source, { ...isolated, cache_scope: 'team' })
  ready(t, second)
  t.match(second.lines.join('\n'), /Using cache|Cache pulled from remote/)
  t.notOk(second.lines.some((line) => line === 'layer'))
  const names = (await server.sdk.images.list()).map(({ name }) => name)
  t.ok(names.includes(second.image_ref ?? ''))
  t.same(names.filter((name) => name.includes('cache/')), [])
}

async function tellsWhatIsMissing (t: Test): Promise<void> {
  const noDockerfile = await scene.build({ 'readme.txt': '' }, isolated)
  t.match(noDockerfile, { status: 'failed', error: 'the source has no file Dockerfile' })
  const noArchive = await scene.follow(await submit(server, Buffer.from('this is no archive'), isolated))
  t.equal(noArchive.status, 'failed')
  t.match(noArchive.error, /^the source could not be unpacked, is it a tar\.gz\?\ntar: /)
  const noBase = await scene.build({ Dockerfile: 'FROM nobody/has-this\n' }, isolated)
  t.equal(noBase.status, 'failed')
  t.match(noBase.error, /nobody\/has-this/)
  t.match(noBase.error, /network_mode isolated/)
}

async function outOfMemory (t: Test): Promise<void> {
  const build = await scene.build({ Dockerfile: `FROM ${scene.host}/bases/tcc\nRUN dd if=/dev/zero of=/dev/null bs=320M count=1\n` }, { ...onBuilder, memory_mb: '384' })
  t.equal(build.status, 'failed')
  t.match(build.error, /ran out of memory: the build had 384 MB\. Raise memory_mb/)
}

async function timesOut (t: Test): Promise<void> {
  // Enough for its step to begin on a host as busy as this one is.
  const seconds = Math.ceil(Math.max(40, 4 * failedAfterSeconds))
  const build = await scene.build({ Dockerfile: 'FROM bases/tcc\nRUN echo waiting for nothing && sleep 1000\n' }, { ...onBuilder, timeout_seconds: String(seconds) })
  t.equal(build.status, 'failed')
  t.match(build.error, `took longer than ${seconds} s`)
  t.match(build.error, /waiting for nothing/)
  const next = await scene.build(PROGRAM, { ...onBuilder, ...withToken })
  ready(t, next)
  t.ok(next.lines.some((line) => line.startsWith('--> Using cache')), 'the disk of its builder is left in order')
}

async function killed (t: Test): Promise<void> {
  const id = await scene.submit({ Dockerfile: 'FROM bases/tcc\nRUN echo about to be killed && sleep 1000\n' }, onBuilder)
  for await (const event of await server.sdk.builds.events(id, { follow: true })) if (event.content === 'about to be killed') break
  await server.kill9()
  await server.restart()
  const build = await scene.follow(id)
  t.equal(build.status, 'failed')
  t.match(build.error, /the server was stopped while the build was building/)
  t.same((await server.sdk.instances.list()).map(({ name }) => name), [])
  const next = await scene.build(PROGRAM, { ...onBuilder, ...withToken })
  ready(t, next)
  t.match(next.lines[0], /the cache of this builder is thrown away, since its last build did not end in order/)
}

async function nothingLeft (t: Test): Promise<void> {
  t.same((await server.sdk.instances.list()).map(({ name }) => name), [])
  t.same((await diskFiles(server)).length, 1)
  t.same(await placesOf(server, TOKEN), [])
}
