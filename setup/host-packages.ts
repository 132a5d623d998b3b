// Writes the packages that core and the manifests of the plugins name into the list of setup/install-host-packages.sh, which has to know them before anything is compiled, and into that of the checks of a host
// (core/library/host-checks/packages.ts), which the command has, too, and it loads no plugin.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { packageRoot } from '../core/package-root.ts'
import { builtInFolder, findBuiltIns, importPlugin } from '../core/plugins/discover.ts'
import { SHARED_PACKAGES, type HostPackage } from '../core/process/packages.ts'

const SCRIPT = join(packageRoot, 'setup/install-host-packages.sh')
const CHECKS = join(packageRoot, 'core/library/host-checks/packages.ts')
const LIST = /^of_berth='\n[^']*'$/m
const CHECKED = /= \[\n[^]*\]$/m
const NEEDS = ['server', 'network', 'tests'] as const

/** The packages of core and of all built-in plugins. */
export async function hostPackages (): Promise<readonly HostPackage[]> {
  const plugins = await Promise.all([...await findBuiltIns(builtInFolder)].map(async ([id, file]) => await importPlugin(id, file)))
  return [...SHARED_PACKAGES, ...plugins.flatMap(({ manifest: { hostPackages: packages = [] } }) => packages)]
}

/** Those that are installed for some need, in the order of the needs. */
export async function neededPackages (): Promise<ReadonlyArray<HostPackage & Required<Pick<HostPackage, 'need' | 'proof'>>>> {
  const packages = await hostPackages()
  return NEEDS.flatMap((need) => packages.filter((each) => each.need === need).sort((a, b) => a.name < b.name ? -1 : 1).map((each) => ({ ...each, need, proof: each.proof ?? each.commands[0] ?? each.name })))
}

/** The script with the list that it should contain. */
export async function scriptWithPackages (): Promise<string> {
  const rows = (await neededPackages()).map(({ need, name, proof }) => `${need} ${name} ${proof}`)
  return (await readFile(SCRIPT, 'utf8')).replace(LIST, `of_berth='\n${rows.join('\n')}\n'`)
}

/** The module with the list that the checks of a host should have. */
export async function checksWithPackages (): Promise<string> {
  const rows = (await neededPackages()).map(({ need, name, proof, use, versionOption, oldest }) => {
    if (use === undefined) throw new Error(`the package ${name} does not say what its use is`)
    const fields = { name, proof, use, versionOption, oldest }
    return `  { ${[...Object.entries(fields).flatMap(([key, value]) => value === undefined ? [] : [`${key}: '${value.replaceAll("'", "\\'")}'`]), ...need === 'tests' ? ['isOptional: true'] : []].join(', ')} }`
  })
  return (await readFile(CHECKS, 'utf8')).replace(CHECKED, `= [\n${rows.join(',\n')}\n]`)
}

if (process.argv[1] === import.meta.filename) {
  await writeFile(SCRIPT, await scriptWithPackages())
  await writeFile(CHECKS, await checksWithPackages())
}
