// Holds plugins to their manifests: what they may put into the container, and what they may read from it.
import { asFunction, type AwilixContainer } from 'awilix'
import type { AllDeps, PluginManifest, Registrar, SlotName } from './manifest.ts'

/** The container key of one filler of a slot; the separator cannot occur in a service key that is written in a manifest. */
const fillerKey = (slot: string, name: string): string => `${slot}:${name}`

/** Asked by objects that are inspected, awaited or printed; they are never services. */
const NOT_A_SERVICE = new Set(['then', 'toJSON', 'inspect', 'constructor'])

/**
 * The services that one plugin sees. A required key gives the service, an optional one `undefined` unless it is there,
 * and any other key throws. A filler that reads its own slot sees its own implementation only.
 * @param isReady whether the supplier of a key has started
 */
export function cradleFor (container: AwilixContainer, manifest: PluginManifest, isReady: (key: string) => boolean): AllDeps {
  const own = new Set<string>(manifest.provides)
  const required = new Set<string>(manifest.requires)
  const optional = new Set<string>(manifest.optional ?? [])
  const keys = [...new Set([...own, ...required, ...optional])]
  const fills = manifest.fills
  const read = (key: string): unknown => {
    if (own.has(key) || required.has(key)) return container.resolve(key)
    if (optional.has(key)) return isReady(key) ? container.resolve(key) : undefined
    if (fills?.slot === key) return new Map([[fills.name, container.resolve(fillerKey(key, fills.name))]])
    throw new Error(`plugin ${manifest.id} reads "${key}", which its manifest does not declare in provides, requires or optional`)
  }
  const target: AllDeps = Object.create(null)
  return new Proxy(target, {
    get: (_target, key) => typeof key === 'symbol' || NOT_A_SERVICE.has(key) ? undefined : read(key),
    has: (_target, key) => typeof key === 'string' && keys.includes(key),
    ownKeys: () => keys,
    getOwnPropertyDescriptor: (_target, key) => typeof key === 'string' && keys.includes(key)
      ? { enumerable: true, configurable: true, get: () => read(key) }
      : undefined,
    set: (_target, key) => { throw new Error(`plugin ${manifest.id} may not set "${String(key)}": services are registered, not assigned`) }
  })
}

export interface CheckedRegistrar extends Registrar {
  /** Throws unless everything that the manifest promises has been registered. */
  verify (): void
}

/** The registrar handed to one plugin: it takes the declared keys, each once, and nothing else. */
export function registrarFor (container: AwilixContainer, manifest: PluginManifest, deps: AllDeps): CheckedRegistrar {
  const { id, provides, fills } = manifest
  const seen = new Set<string>()
  const put = (key: string, factory: (deps: AllDeps) => unknown): void => {
    if (seen.has(key)) throw new Error(`plugin ${id} registers "${key}" twice`)
    seen.add(key)
    container.register(key, asFunction(() => factory(deps)).singleton())
  }
  const promised = [...provides, ...fills === undefined ? [] : [fillerKey(fills.slot, fills.name)]]
  return {
    provide (key, factory) {
      if (!provides.includes(key)) throw new Error(`plugin ${id} registers "${key}", which its manifest does not provide`)
      put(key, factory)
    },
    fill (slot, factory) {
      if (fills?.slot !== slot) throw new Error(`plugin ${id} fills the slot "${slot}", which its manifest does not say`)
      put(fillerKey(slot, fills.name), factory)
    },
    verify () {
      const missing = promised.filter(key => !seen.has(key))
      if (missing.length > 0) throw new Error(`its manifest promises ${missing.join(', ')}, which it did not register`)
    }
  }
}

/**
 * Registers a slot: a map of the implementations of those fillers that have started. It is built when first read,
 * which is after every filler has started or failed, because all of them come before any plugin that requires the slot.
 */
export function registerSlot (container: AwilixContainer, slot: SlotName, startedNames: () => readonly string[]): void {
  container.register(slot, asFunction(() =>
    new Map(startedNames().map(name => [name, container.resolve(fillerKey(slot, name))]))).singleton())
}
