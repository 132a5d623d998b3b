// buildah's configuration of registries in the VM: the built-in registry is on the guest's own loopback, under each name that the server has.

export interface RegistriesView {
  /** the built-in registry's port in the guest */
  readonly port: number
  /** the server's host names */
  readonly names: readonly string[]
  /** whether the build may read all of the built-in registry */
  readonly isReadable: boolean
}

/** The registries in which a short name is searched, in this order. */
export function searchedRegistries ({ port, isReadable }: RegistriesView): string[] {
  return [...isReadable ? [`127.0.0.1:${port}`] : [], 'docker.io']
}

/** The text of registries.conf. A short name is searched in the built-in registry, then in Docker's; Docker's own is listed here explicitly, so that an operator can mirror it. */
export function registriesConf (view: RegistriesView): string {
  const { port, names, isReadable } = view
  const here = `127.0.0.1:${port}`
  const sections = [...new Set([...names, here])].map((name) => table({ prefix: name, location: here }))
  const mirror = '\n[[registry]]\nprefix = "docker.io"\nlocation = "docker.io"\n' + table({ location: `${here}/docker.io` }, 'registry.mirror')
  return [
    `unqualified-search-registries = [${searchedRegistries(view).map(quote).join(', ')}]`,
    'short-name-mode = "permissive"',
    ...sections,
    ...isReadable ? [mirror] : []
  ].join('\n')
}

function table (entries: Readonly<Record<string, string>>, name = 'registry'): string {
  return [`[[${name}]]`, ...Object.entries(entries).map(([key, value]) => `${key} = ${quote(value)}`), 'insecure = true', ''].join('\n')
}

/** A string of TOML, whose escapes are those of JSON. */
function quote (text: string): string {
  return JSON.stringify(text)
}
