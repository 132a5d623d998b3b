// The image that builds start from, made of real Debian packages and put into a real registry.
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pino } from 'pino'
import t from 'tap'
import { createHostCommands } from '../../../../core/process/run.ts'
import { createBuilderImage, type BuilderImage, type BuilderImageOptions } from '../../../../plugins/builds/builder-image/builder-image.ts'
import { NEEDLESS } from '../../../../core/library/debian/packages.ts'
import { tryPrograms } from '../../../../plugins/builds/builder-image/trial.ts'
import { startImagesApp, temporaryFolder, type ImagesApp } from '../../../helpers/images-app.ts'

const signal = AbortSignal.timeout(600_000)
t.setTimeout(600_000)
const app = await startImagesApp(t)
const folder = join(await temporaryFolder(t), 'builder')

function builderImage (on: ImagesApp, options: Partial<BuilderImageOptions> = {}): BuilderImage {
  return createBuilderImage({ log: pino({ level: 'silent' }), commands: createHostCommands(), images: on.images, registry: on.registry, folder, readyTimeoutMs: 300_000, ...options })
}

async function run (rootfs: string, path: string): Promise<string> {
  const { stdout } = await createHostCommands().run('dump.erofs', ['--path', path, rootfs])
  return stdout
}

t.test('it is made once for all who wait for it, has what a build needs, and is named by its digest', async (t) => {
  // what a server has left that was killed half-way
  await mkdir(join(folder, 'making-before/archives'), { recursive: true })
  const image = builderImage(app)
  const left = t.rejects(image.ready(AbortSignal.timeout(10)), 'who does not want to wait any longer need not, and takes nothing from the others')
  const [one, two] = await Promise.all([image.ready(signal), image.ready(signal)])
  await left
  t.match(one, /^localhost\/berth\/builder@sha256:[0-9a-f]{64}$/)
  t.equal(two, one)
  const ready = await app.images.require(one, 1000)
  for (const path of ['/usr/bin/buildah', '/usr/bin/crun', '/usr/bin/tar', '/usr/bin/zstd', '/etc/ssl/certs/ca-certificates.crt', '/etc/containers/policy.json']) t.match(await run(ready.rootfs, path), 'regular file', path)
  t.same(await readdir(folder), ['builder.json'], 'nothing else is left')
  await image.close()
})

t.test('the next server uses it as it is', async (t) => {
  const before = await readFile(join(folder, 'builder.json'), 'utf8')
  const image = builderImage(app, { commands: { run: async () => { throw new Error('no command is needed') } } })
  t.match(await image.ready(signal), JSON.parse(before).digest)
  await image.close()
})

t.test('when it is gone from the registry it is made anew', async (t) => {
  await writeFile(join(folder, 'builder.json'), JSON.stringify({ ...JSON.parse(await readFile(join(folder, 'builder.json'), 'utf8')), digest: `sha256:${'0'.repeat(64)}` }))
  const image = builderImage(app)
  const name = await image.ready(signal)
  t.notMatch(name, '00000000')
  t.equal((await app.images.require(name, 1000)).status, 'ready')
  await image.close()
})

t.test('without packages it says what is missing, and the next one tries again', async (t) => {
  let calls = 0
  const image = builderImage(app, { folder: join(await temporaryFolder(t), 'other'), commands: { run: async () => { calls++; return await createHostCommands().run('/nonexistent/apt-get', []) } } })
  for (const tries of [1, 2]) {
    await t.rejects(image.ready(signal), { code: 'builder_image_unavailable', message: /the host has no command/ })
    t.equal(calls, tries)
  }
  await image.close()
})

t.test('an operator\'s image is used in its place', async (t) => {
  const image = builderImage(app, { configured: 'localhost/mine/builder:1', folder: join(await temporaryFolder(t), 'none') })
  await t.rejects(image.ready(signal), { code: 'not_found' }, 'it is not there')
  const known = `localhost/berth/builder@${JSON.parse(await readFile(join(folder, 'builder.json'), 'utf8')).digest}`
  t.equal(await builderImage(app, { configured: known }).ready(signal), known)
})

t.test('what packages do without is no library: those are taken as the packages ask for them', async (t) => {
  t.same(NEEDLESS.filter((name) => name.startsWith('lib') && !name.endsWith('-perl')), [])
})

t.test('an image with a program that lacks a library is not kept, and the error says which', async (t) => {
  const root = join(await temporaryFolder(t), 'root')
  const commands = createHostCommands()
  await makeTree(root, ['/usr/bin/env', '/usr/bin/tar'])
  await tryPrograms(commands, root, ['tar'])
  await rm(join(root, await libraryOf('/usr/bin/tar', 'libacl')))
  await t.rejects(tryPrograms(commands, root, ['env', 'tar']), { code: 'builder_image_unavailable', message: /its tar does not run: .*libacl\.so/ })
  await t.rejects(tryPrograms(commands, root, ['buildah']), { code: 'builder_image_unavailable', message: /its buildah does not run: .*No such file/ })
})

/** A root with these programs of this host and the libraries that they need. */
async function makeTree (root: string, programs: readonly string[]): Promise<void> {
  await mkdir(root)
  for (const program of programs) {
    const libraries = (await createHostCommands().run('ldd', [program])).stdout.match(/\/\S+/g) ?? []
    await createHostCommands().run('cp', ['--dereference', '--parents', '--target-directory', root, program, ...libraries])
  }
}

async function libraryOf (program: string, name: string): Promise<string> {
  const { stdout } = await createHostCommands().run('ldd', [program])
  return stdout.match(/\/\S+/g)?.find((path) => path.includes(`/${name}.`)) ?? ''
}
