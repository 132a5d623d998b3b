import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { packageRoot } from '../../core/package-root.ts'
import { orphans, removeOrphans } from '../../setup/compiled-orphans.ts'
import { skipWithout } from '../../setup/structure/deleted.ts'
import { testFolder } from '../helpers/folder.ts'

const tsconfig = JSON.stringify({ include: ['core', 'plugins', 'proxy', 'test', 'bench'], exclude: ['plugins/console/web'] })
const compiled = (name: string): Record<string, string> => ({ [`${name}.js`]: '', [`${name}.js.map`]: '', [`${name}.d.ts`]: '' })

/** Every file and folder below one. */
async function contents (folder: string): Promise<string[]> {
  return (await readdir(folder, { recursive: true })).sort()
}

t.test('compiled files without a source go: a later version\'s migrations, and a plugin that is not there any more with all that its folder holds', async (t) => {
  const root = testFolder(t, {
    'tsconfig.json': tsconfig,
    core: { 'main.ts': '' },
    plugins: { stays: { 'index.ts': '', migrations: { '0001-first.ts': '' } } },
    dist: {
      core: { ...compiled('main'), ...compiled('old'), process: compiled('gone') },
      plugins: {
        stays: { ...compiled('index'), migrations: { ...compiled('0001-first'), ...compiled('0002-later') } },
        gone: { ...compiled('index'), 'berth-program': '', migrations: compiled('0001-first') }
      },
      bench: compiled('a')
    }
  })
  const files = (name: string): string[] => ['.d.ts', '.js', '.js.map'].map((end) => `${name}${end}`)
  t.same((await removeOrphans(root)).sort(), ['bench', ...files('core/old'), 'core/process', 'plugins/gone', ...files('plugins/stays/migrations/0002-later')].sort())
  t.same(await contents(join(root, 'dist')), ['core', ...files('core/main'), 'plugins', 'plugins/stays', ...files('plugins/stays/index'), 'plugins/stays/migrations', ...files('plugins/stays/migrations/0001-first')].sort())
  t.same(await removeOrphans(root), [])
})

t.test('what other steps of the build make stays: bundles, programs of C, the console\'s pages, the manual, and what is not of the compiler', async (t) => {
  const root = testFolder(t, {
    'tsconfig.json': tsconfig,
    core: { 'a.ts': '' },
    plugins: { console: { web: { 'main.tsx': '' }, 'index.ts': '' } },
    proxy: { parent: { 'main.ts': '' }, workers: { 'main.ts': '' } },
    test: { 'a.test.ts': '' },
    dist: {
      'tsconfig.tsbuildinfo': '',
      '.built': '',
      guest: { 'berth-init': '' },
      node_modules: { fastify: { 'index.cjs': '', 'a.js': '' } },
      core: { ...compiled('a'), 'berth-spawner': '', 'berth-spawner.new': '', 'berth.1': '' },
      plugins: { console: { ...compiled('index'), web: { 'main-N4XLHITM.js': '', 'main-N4XLHITM.css': '', 'index.html': '' } } },
      proxy: { 'main.js': '', 'main.js.map': '', 'worker.js': '', 'worker.js.map': '', parent: compiled('main'), workers: compiled('main') },
      test: { ...compiled('a.test'), node_modules: { tap: { 'index.js': '' } } }
    }
  })
  const before = await contents(root)
  t.same(await removeOrphans(root), [])
  t.same(await contents(root), before)
})

t.test('of this build, neither the proxy\'s programs nor the console\'s pages are taken for orphans', { skip: skipWithout('console') }, async (t) => {
  const [proxy, pages] = await Promise.all(['proxy', 'plugins/console/web'].map(async (folder) => (await readdir(join(packageRoot, 'dist', folder))).map((name) => `${folder}/${name}`)))
  const made = [...proxy ?? [], ...pages ?? []].filter((path) => path.endsWith('.js'))
  t.ok(made.length > 2)
  const found = await orphans(packageRoot)
  t.same(made.filter((path) => found.includes(path)), [])
})
