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

/** Every service and every slot, by key. */
export type AllDeps = Cradle & Slots

/** What a plugin sees: what its manifest declares and nothing else, where what is optional may be undefined. Reading any other key throws. */
export type DepsOf<M extends PluginManifest> = Pick<AllDeps, Named<M['provides']> | Named<M['requires']>> & Perhaps<OptionalOf<M>> & Pick<Slots, SlotOf<M>>

type Named<Keys> = Keys extends ReadonlyArray<infer K> ? K & keyof AllDeps : never
type OptionalOf<M> = M extends { readonly optional?: infer Keys } ? Named<Keys> : never
type Perhaps<K extends keyof AllDeps> = { readonly [Key in K]: AllDeps[Key] | undefined }
/** A filler that reads its own slot sees its own implementation. */
type SlotOf<M> = M extends { readonly fills?: infer F } ? F extends { readonly slot: infer S } ? S & SlotName : never : never
type Implementation<S extends SlotName> = Slots[S] extends ReadonlyMap<string, infer V> ? V : never

export interface Registrar<M extends PluginManifest = PluginManifest> {
  /** Registers the factory of one declared key. The factory runs at most once, when first read. */
  provide<K extends M['provides'][number]> (key: K, factory: (deps: DepsOf<M>) => Cradle[K]): void
  /** Registers the factory of the slot implementation declared by `fills`. */
  fill<S extends SlotOf<M>> (slot: S, factory: (deps: DepsOf<M>) => Implementation<S>): void
}

export interface Plugin<M extends PluginManifest = PluginManifest> {
  readonly manifest: M
  /** Puts factories in the container. No I/O. */
  register? (registrar: Registrar<M>, config: Static<M['config']>): void
  /** Opens, recovers, reconciles. Throw `SkipPlugin` when the host cannot run it. */
  start? (deps: DepsOf<M>, config: Static<M['config']>, signal: AbortSignal): Promise<void>
  /** Routes, mounted encapsulated once the plugin has started. */
  routes? (deps: DepsOf<M>, config: Static<M['config']>): FastifyPluginAsync
  /** Undoes start. Idempotent; runs also when start failed midway. */
  stop? (deps: DepsOf<M>): Promise<void>
}

/** Thrown by `start` when this host cannot run the plugin; it is then `skipped`, with this reason. */
export class SkipPlugin extends Error {
  override readonly name = 'SkipPlugin'
}

/** Gives a plugin value the types of what its manifest says. */
export function definePlugin<const M extends PluginManifest> (plugin: Plugin<M>): Plugin<M> {
  return plugin
}
