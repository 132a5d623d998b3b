// The worked example of core/README.md is a plugin that works, from a folder that knows nothing of Berth.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { Type } from 'typebox'
import { createApp } from '../../../core/app.ts'
import { resolveConfig } from '../../../core/config/resolve.ts'
import { sourceOfFile } from '../../../core/config/source.ts'
import { packageRoot } from '../../../core/package-root.ts'
import type { Plugin } from '../../../core/plugins/manifest.ts'
import { ADMIN_KEY, authorization, bareApp, noBuiltIns, temporaryFolder } from '../bare-app.ts'

declare module '../../../core/plugins/manifest.ts' {
  interface Cradle { readonly greeter: { greet (name: string): string } }
}

t.test('a third party\'s plugin adds a route and a service', async (t) => {
  const folder = await temporaryFolder(t)
  const readme = await readFile(join(packageRoot, 'core/README.md'), 'utf8')
  const block = (language: string): string => {
    const text = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'ms').exec(readme)?.[1]
    if (text === undefined) throw new Error(`core/README.md has no block of ${language}`)
    return text
  }
  await writeFile(join(folder, 'greeter.mjs'), block('js'))
  await writeFile(join(folder, 'berth.yaml'), block('yaml'))

  let heard = ''
  const guest: Plugin = {
    manifest: { id: 'aaa-listener', provides: [], requires: ['greeter'], config: Type.Object({}, { additionalProperties: false }) },
    create: ({ greeter }) => ({ async start () { heard = greeter.greet('core') } })
  }
  const lines: string[] = []
  const environment = { BERTH_DATA_DIR: join(folder, 'data'), BERTH_API_KEY: ADMIN_KEY }
  const resolved = await resolveConfig(await sourceOfFile(join(folder, 'berth.yaml')), { environment, builtIns: noBuiltIns, plugins: [guest] })
  const app = await createApp(resolved, { logStream: { write: line => { lines.push(line) } } })
  t.teardown(() => app.stop())
  await app.start({ listen: false })

  const answer = await app.http.inject({ url: '/greetings/Ada', headers: authorization })
  t.strictSame([answer.statusCode, answer.json()], [200, { text: 'Good day, Ada!' }])
  t.equal((await app.http.inject('/greetings/Ada')).statusCode, 401)
  t.equal((await app.http.inject({ url: `/greetings/${'x'.repeat(41)}`, headers: authorization })).statusCode, 400)
  t.equal(heard, 'Good day, core!')
  t.match((await app.http.inject({ url: '/plugins', headers: authorization })).json(), [{ id: 'aaa-listener', state: 'started' }, { id: 'greeter', state: 'started' }])
  await app.stop()
  t.match(lines.join(''), /"sample":"Good day, world!".*greeter is gone/s)
})

t.test('a plugin\'s groups are in the document before core\'s, and its routes are in theirs', async (t) => {
  const tags = [{ name: 'parts', description: 'What things are made of' }, { name: 'things', description: 'What there is', place: 1 }, { name: 'keys', description: 'Not those of core' }]
  const plugin: Plugin = {
    manifest: { id: 'things', provides: [], requires: [], tags, config: Type.Object({}, { additionalProperties: false }) },
    create: () => ({
      async routes (http) { for (const url of ['/things', '/parts/:id', '/else']) http.get(url, { config: { scope: null } }, async () => ({})) }
    })
  }
  const { app } = await bareApp(t, {}, { plugins: [plugin] })
  await app.start({ listen: false })
  const { tags: groups, paths } = (await app.http.inject('/openapi.json')).json()
  t.same(groups, [{ name: 'things', description: 'What there is' }, { name: 'keys', description: 'Not those of core' }, { name: 'parts', description: 'What things are made of' }, { name: 'server', description: 'This server and what it can do' }])
  t.same(['/things', '/parts/{id}', '/else', '/whoami'].map((path) => paths[path].get.tags), [['things'], ['parts'], ['server'], ['keys']])
  await t.rejects(bareApp(t, {}, { plugins: [{ manifest: { ...plugin.manifest, tags: [{ name: '', description: '' }] } }] }), /manifest\.tags\.0\.name/)
})

t.test('a command that is missing is told with the package that the plugin\'s manifest names', async (t) => {
  let said = ''
  const plugin: Plugin = {
    manifest: { id: 'runner', provides: [], requires: ['commands'], hostPackages: [{ name: 'its-package', commands: ['its-command'] }], config: Type.Object({}, { additionalProperties: false }) },
    create: ({ commands }) => ({ async start () { said = await commands.run('its-command', []).then(() => '', String) } })
  }
  const { app } = await bareApp(t, {}, { plugins: [plugin] })
  await app.start({ listen: false })
  t.match(said, /the host has no command its-command; install the package its-package$/)
  await t.rejects(bareApp(t, {}, { plugins: [{ manifest: { ...plugin.manifest, hostPackages: [{ name: '', commands: [] }] } }] }), /manifest\.hostPackages\.0\.name/)
})
