// The errors of others that a plugin's calls can throw: those of the plugins that it calls, of the plugins that these call, and of the host and its secrets.
import { HostCommandMissing } from '../process/errors.ts'
import { SecretUnavailable } from '../secrets/errors.ts'
import type { DeclaredError } from '../errors/define.ts'
import { suppliersOf } from './graph.ts'
import type { PluginManifest } from './manifest.ts'

/** @param running the manifests of the plugins that have started */
export function errorsOfCalled (manifest: PluginManifest, running: readonly PluginManifest[]): DeclaredError[] {
  const called = new Set<PluginManifest>()
  const follow = ({ requires, optional = [] }: PluginManifest): void => {
    for (const supplier of [...requires, ...optional].flatMap((key) => suppliersOf(key, running))) {
      if (called.has(supplier)) continue
      called.add(supplier)
      follow(supplier)
    }
  }
  follow(manifest)
  return [HostCommandMissing, SecretUnavailable, ...[...called].flatMap(({ errors = [] }) => errors)]
}
