// Writes the packages that core and the manifests of the plugins name into the list of setup/install-host-packages.sh, which has to know them before anything is compiled.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { packageRoot } from '../core/package-root.ts'
import { builtInFolder, findBuiltIns, importPlugin } from '../core/plugins/discover.ts'
import { SHARED_PACKAGES, type HostPackage } from '../core/process/packages.ts'

const SCRIPT = join(packageRoot, 'setup/install-host-packages.sh')
const LIST = /^of_berth='\n[^']*'$/m
const NEEDS = ['server', 'network', 'tests'] as const

/** The packages of core and of all built-in plugins. */
export async function hostPackages (): Promise<readonly HostPackage[]> {
  const plugins = await Promise.all([...await findBuiltIns(builtInFolder)].map(async ([id, file]) => await importPlugin(id, file)))
  return [...SHARED_PACKAGES, ...plugins.flatMap(({ manifest: { hostPackages: packages = [] } }) => packages)]
}

/** The script with the list that it should contain. */
export async function scriptWithPackages (): Promise<string> {
  const packages = await hostPackages()
  const rows = NEEDS.flatMap((need) => packages.filter((each) => each.need === need).sort((a, b) => a.name < b.name ? -1 : 1).map(({ name, commands, proof = commands[0] ?? name }) => `${need} ${name} ${proof}`))
  return (await readFile(SCRIPT, 'utf8')).replace(LIST, `of_berth='\n${rows.join('\n')}\n'`)
}

if (process.argv[1] === import.meta.filename) await writeFile(SCRIPT, await scriptWithPackages())
