// Which plugins' folders can be deleted, and what of this checkout goes with one that is.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { packageRoot } from '../../core/package-root.ts'
import { builtInFolder } from '../../core/plugins/discover.ts'

/** Plugins whose folder can be deleted, one at a time. */
export const REMOVABLE = ['builds', 'console', 'devices', 'egress', 'host', 'pushes', 'resources', 'snapshots', 'volumes'] as const

const sources = join(packageRoot, 'plugins')
/** Compiled files alone are on the emulated host of tests, and may still be there in a checkout whose sources were deleted. */
const plugins = existsSync(sources) ? sources : fileURLToPath(builtInFolder)

/** Those whose folder was deleted from this checkout. */
export const DELETED: readonly string[] = REMOVABLE.filter((plugin) => !existsSync(join(plugins, plugin)))

/** The name of these is also that of files that have nothing to do with them: only the folder of their own tests goes with them. */
const COMMON_NAMES: readonly string[] = ['host']
/** Files that cover all of the product, and are pointless without a part of it. */
const WHOLE = ['test/torture/', 'test/integration/journey', 'test/integration/drivers/']

/**
 * Whether a file goes with a plugin: its own folder, and in test/ and bench/ what bears its name: a folder or file named as the plugin is (`test/plugins/volumes/`, `bench/egress/`, `test/integration/volumes.long.test.ts`),
 * outside of the folders of other plugins' tests also one that begins so (`volumes-large.long.test.ts`), and a file that begins with `with-` and the plugin (`test/plugins/volumes/with-resources.test.ts`);
 * and what goes through all of the product. Of a plugin with a common name, only the folder of its tests.
 */
export function belongsTo (plugin: string, file: string): boolean {
  const [area = '', ...names] = file.split('/')
  if (area === 'plugins') return names[0] === plugin
  if (area !== 'test' && area !== 'bench') return false
  if (WHOLE.some((beginning) => file.startsWith(beginning))) return true
  if (COMMON_NAMES.includes(plugin)) return file.startsWith(`test/plugins/${plugin}/`)
  const isOfAPlugin = area === 'test' && names[0] === 'plugins'
  return names.some((name) => name === plugin || name.startsWith(`with-${plugin}.`) || (!isOfAPlugin && (name.startsWith(`${plugin}.`) || name.startsWith(`${plugin}-`))))
}

/** Whether a file is not in this checkout because the folder of its plugin was deleted. */
export function wentWithItsPlugin (file: string): boolean {
  return !existsSync(join(packageRoot, file)) && DELETED.some((plugin) => belongsTo(plugin, file))
}

/** Why a test of these plugins is skipped, and false while all of them are here. */
export function skipWithout (...plugins: readonly string[]): string | false {
  const gone = plugins.filter((plugin) => DELETED.includes(plugin))
  return gone.length > 0 && `deleted from this checkout: ${gone.join(', ')}`
}

/** The sections of a configuration that this checkout has a plugin for: a server refuses the name of one that it does not know. */
export function withoutDeleted<Section> (sections: Readonly<Record<string, Section>>): Record<string, Section> {
  return Object.fromEntries(Object.entries(sections).filter(([plugin]) => !DELETED.includes(plugin)))
}
