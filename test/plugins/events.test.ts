// Which plugin says what on the bus, and which hears it, stands in the manifests of both.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { packageRoot } from '../../core/package-root.ts'
import { builtInFolder, findBuiltIns, importPlugin } from '../../core/plugins/discover.ts'
import type { PluginManifest } from '../../core/plugins/manifest.ts'

const manifests: PluginManifest[] = []
for (const [id, file] of await findBuiltIns(builtInFolder)) manifests.push((await importPlugin(id, file)).manifest)

interface Use { readonly verb: 'emit' | 'on', readonly event: string }

/** The uses of the bus in the sources of a plugin. */
async function usesOf (id: string): Promise<Use[]> {
  const folder = join(packageRoot, 'plugins', id)
  const files = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.ts'))
  const texts = await Promise.all(files.map(async (name) => await readFile(join(folder, name), 'utf8')))
  return texts.flatMap((text) => [...text.matchAll(/\bevents\.(emit|on)\((?:'([^']+)')?/g)])
    .map(([, verb, event = 'one that is no literal']) => ({ verb: verb === 'emit' ? 'emit' : 'on', event }))
}

t.test('a plugin says and hears no event that its manifest does not declare', async (t) => {
  let count = 0
  for (const { id, emits = [], listens = [] } of manifests) {
    for (const { verb, event } of await usesOf(id)) {
      count += 1
      const declared: readonly string[] = verb === 'emit' ? emits : listens
      t.ok(declared.includes(event), `${id}: ${verb} ${event}`)
    }
  }
  t.ok(count >= 5, 'the sources were read')
})

t.test('an event that a plugin hears is said by one', async (t) => {
  const said: readonly string[] = manifests.flatMap(({ emits = [] }) => emits)
  for (const { id, listens = [] } of manifests) for (const event of listens) t.ok(said.includes(event), `${id} listens for ${event}`)
})
