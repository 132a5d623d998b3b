// The plugin contract: what a plugin says about itself before anything of it runs. Types only.
import type { FastifyPluginAsync } from 'fastify'
import type { Static, TObject } from 'typebox'
import type { DomainEvents } from '../contracts/services.ts'

/**
 * Every service that can be in the container, by key. Empty here: core and each plugin's `contract.ts` augment it,
 * so a key and its type are declared by the one who provides it.
 */
// eslint-disable-next-line @typescript-eslint/no-empty-object-type
export interface Cradle {}

export type ServiceKey = keyof Cradle & string

/**
 * Slots: container keys with many providers. A filler provides one named implementation; core supplies the slot to
 * its requirers as a `ReadonlyMap<name, implementation>` of the fillers that started.
 */
// eslint-disable-next-line @typescript-eslint/no-empty-object-type
export interface Slots {}

export type SlotName = keyof Slots & string

export interface PluginManifest<C extends TObject = TObject> {
  /** kebab-case, equal to the folder name */
  readonly id: string
  /** container keys this plugin registers */
  readonly provides: readonly ServiceKey[]
  /** keys or slots that must be supplied by core, an enabled plugin, or at least one slot filler */
  readonly requires: readonly (ServiceKey | SlotName)[]
  /** keys or slots this plugin starts after when they are present, and reads as `undefined` when not, or when nobody fills them */
  readonly optional?: readonly (ServiceKey | SlotName)[]
  /** the slot that this plugin joins, and the name under which it does */
  readonly fills?: { readonly slot: SlotName, readonly name: string }
  /** events that it says on the bus, and those of anybody that it hears */
  readonly emits?: ReadonlyArray<keyof DomainEvents>
  readonly listens?: ReadonlyArray<keyof DomainEvents>
  /** closed TypeBox object, defaults inside */
  readonly config: C
  /** scopes that its routes ask keys for, beside core's own (core/auth/scopes.ts) */
  readonly scopes?: readonly string[]
  /** this plugin's own folder of migrations (compiled modules with `up` and `down`) */
  readonly migrations?: URL
}

/** The services a plugin declared; reading any other key throws. */
export type Deps = Cradle & Slots

export interface Registrar {
  /** Registers the factory of one declared key. The factory runs at most once, when first read. */
  provide<K extends ServiceKey> (key: K, factory: (deps: Deps) => Cradle[K]): void
  /** Registers the factory of the slot implementation declared by `fills`. */
  fill<S extends SlotName> (slot: S, factory: (deps: Deps) => Slots[S] extends ReadonlyMap<string, infer V> ? V : never): void
}

export interface Plugin<C extends TObject = TObject> {
  readonly manifest: PluginManifest<C>
  /** Puts factories in the container. No I/O. */
  register? (registrar: Registrar, config: Static<C>): void
  /** Opens, recovers, reconciles. Throw `SkipPlugin` when the host cannot run it. */
  start? (deps: Deps, config: Static<C>, signal: AbortSignal): Promise<void>
  /** Routes, mounted encapsulated once the plugin has started. */
  routes? (deps: Deps, config: Static<C>): FastifyPluginAsync
  /** Undoes start. Idempotent; runs also when start failed midway. */
  stop? (deps: Deps): Promise<void>
}

/** Thrown by `start` when this host cannot run the plugin; it is then `skipped`, with this reason. */
export class SkipPlugin extends Error {
  override readonly name = 'SkipPlugin'
}

/** Gives a plugin value its exact config type. */
export function definePlugin<const C extends TObject> (plugin: Plugin<C>): Plugin<C> {
  return plugin
}
