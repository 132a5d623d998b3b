// Enforces manifests: what a plugin may put into the container, and what it may read from it.
import { asFunction, asValue, type AwilixContainer } from 'awilix'
import type { EventBus } from '../contracts/services.ts'
import type { AllDeps, Created, PluginManifest, SlotName } from './manifest.ts'

/** The container key of one filler of a slot; the separator cannot occur in a service key that is written in a manifest. */
const fillerKey = (slot: string, name: string): string => `${slot}:${name}`

/** Properties that are read when an object is inspected, awaited or printed; they are never services. */
const NOT_A_SERVICE = new Set(['then', 'toJSON', 'inspect', 'constructor'])

/**
 * The services that one plugin sees. A required key gives the service, an optional one `undefined` unless it is there,
 * and any other key throws.
 * @param isReady whether the supplier of a key has started
 */
export function cradleFor (container: AwilixContainer, manifest: PluginManifest, isReady: (key: string) => boolean): AllDeps {
  const required = new Set<string>(manifest.requires)
  const optional = new Set<string>(manifest.optional ?? [])
  const keys = [...new Set([...required, ...optional])]
  let events: EventBus | undefined
  const take = (key: string): unknown => {
    if (key !== 'events') return container.resolve(key)
    events ??= declaredEvents(container.resolve<EventBus>(key), manifest)
    return events
  }
  const read = (key: string): unknown => {
    if (required.has(key)) return take(key)
    if (optional.has(key)) return isReady(key) ? take(key) : undefined
    throw new Error(`plugin ${manifest.id} reads "${key}", which its manifest does not declare in requires or optional`)
  }
  const target: AllDeps = Object.create(null)
  return new Proxy(target, {
    get: (_target, key) => typeof key === 'symbol' || NOT_A_SERVICE.has(key) ? undefined : read(key),
    has: (_target, key) => typeof key === 'string' && keys.includes(key),
    ownKeys: () => keys,
    getOwnPropertyDescriptor: (_target, key) => typeof key === 'string' && keys.includes(key)
      ? { enumerable: true, configurable: true, get: () => read(key) }
      : undefined,
    set: (_target, key) => { throw new Error(`plugin ${manifest.id} may not set "${String(key)}": services are what its create returns`) }
  })
}

/** The event bus, limited to the events that the manifest names. */
function declaredEvents (bus: EventBus, { id, emits = [], listens = [] }: PluginManifest): EventBus {
  const [said, heard] = [new Set<PropertyKey>(emits), new Set<PropertyKey>(listens)]
  const refuse = (does: string, name: PropertyKey, field: string): Error => new Error(`plugin ${id} ${does} the event "${String(name)}", which its manifest does not declare in ${field}`)
  return {
    emit (name, event) {
      if (!said.has(name)) throw refuse('says', name, 'emits')
      bus.emit(name, event)
    },
    on (name, listener) {
      if (!heard.has(name)) throw refuse('hears', name, 'listens')
      return bus.on(name, listener)
    }
  }
}

/** Puts a plugin's services into the container. Throws unless they are exactly what the manifest promises. */
export function registerCreated (container: AwilixContainer, { provides, fills }: PluginManifest, { services = {}, filling }: Created): void {
  const made = new Map<string, unknown>(Object.entries(services).filter(([, service]) => service !== undefined))
  const missing = provides.filter(key => !made.has(key))
  if (missing.length > 0) throw new Error(`its manifest promises ${missing.join(', ')}, which its create did not return`)
  for (const key of made.keys()) {
    if (!provides.some(provided => provided === key)) throw new Error(`its create returned "${key}", which its manifest does not provide`)
  }
  if (fills === undefined && filling !== undefined) throw new Error('its create returned a filling, but its manifest fills no slot')
  if (fills !== undefined && filling === undefined) throw new Error(`its manifest promises to fill the slot "${fills.slot}", and its create returned no filling`)
  for (const [key, service] of made) container.register(key, asValue(service))
  if (fills !== undefined) container.register(fillerKey(fills.slot, fills.name), asValue(filling))
}

/**
 * Registers a slot: a map of the implementations of those fillers that have started. It is built when first read,
 * which is after every filler has started or failed, because all of them come before any plugin that requires the slot.
 */
export function registerSlot (container: AwilixContainer, slot: SlotName, startedNames: () => readonly string[]): void {
  container.register(slot, asFunction(() =>
    new Map(startedNames().map(name => [name, container.resolve(fillerKey(slot, name))]))).singleton())
}
