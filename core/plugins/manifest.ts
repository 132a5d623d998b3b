// The plugin contract: what a plugin declares about itself before any of its code runs. Types only.
import type { FastifyPluginAsync } from 'fastify'
import type { Static, TObject } from 'typebox'
import type { DomainEvents } from '../contracts/services.ts'
import type { DeclaredError } from '../errors/define.ts'
import type { DocumentTag } from '../http/openapi/tags.ts'
import type { HostPackage } from '../process/packages.ts'

/**
 * Every service that can be in the container, by key. Empty here: core and each plugin's `contract.ts` augment it,
 * so the provider of a service declares its key and type.
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
  /** container keys this plugin provides */
  readonly provides: readonly ServiceKey[]
  /** keys or slots that it needs: core, an enabled plugin, or at least one filler of the slot must supply each */
  readonly requires: readonly (ServiceKey | SlotName)[]
  /** keys or slots that this plugin starts after when they are present; when they are not, or nobody fills the slot, it reads `undefined` */
  readonly optional?: readonly (ServiceKey | SlotName)[]
  /** the slot that this plugin fills, and the name under which it does */
  readonly fills?: { readonly slot: SlotName, readonly name: string }
  /** events that it emits on the bus, and those that it listens for */
  readonly emits?: ReadonlyArray<keyof DomainEvents>
  readonly listens?: ReadonlyArray<keyof DomainEvents>
  /** closed TypeBox object, defaults inside */
  readonly config: C
  /** scopes that its routes ask keys for, beside core's own (core/auth/scopes.ts) */
  readonly scopes?: readonly string[]
  /** groups of its routes in the API's document; a route of none is in core's group `server` */
  readonly tags?: readonly DocumentTag[]
  /** errors that its services throw to other plugins that call them; see `passesErrors` of a route's configuration */
  readonly errors?: readonly DeclaredError[]
  /** packages of the host whose commands it runs, besides the shared ones (core/process/packages.ts) */
  readonly hostPackages?: readonly HostPackage[]
  /** this plugin's own folder of migrations (compiled modules with `up` and `down`) */
  readonly migrations?: URL
}

/** Every service and every slot, by key. */
export type AllDeps = Cradle & Slots

/** What a plugin may read: what its manifest requires, and its optional keys, which may be undefined. Reading any other key throws. */
export type DepsOf<M extends PluginManifest> = Pick<AllDeps, Named<M['requires']>> & Perhaps<OptionalOf<M>>

type Named<Keys> = Keys extends ReadonlyArray<infer K> ? K & keyof AllDeps : never
type OptionalOf<M> = M extends { readonly optional?: infer Keys } ? Named<Keys> : never
type Perhaps<K extends keyof AllDeps> = { readonly [Key in K]: AllDeps[Key] | undefined }

/** The lifecycle of a plugin, whatever it provides. */
interface Life {
  /** Opens, recovers, reconciles. Throw `SkipPlugin` when the host cannot run it. `signal` aborts when it takes too long or the server is told to stop. */
  start? (signal: AbortSignal): Promise<void>
  /** Mounted in their own context, once all plugins have started. */
  readonly routes?: FastifyPluginAsync
  /** Undoes `start`. Also runs when `start` failed midway. */
  stop? (): Promise<void>
}

type ProvidedBy<M extends PluginManifest> = M['provides'][number]
type SlotOf<M> = M extends { readonly fills?: infer F } ? F extends { readonly slot: infer S } ? S & SlotName : never : never
type Implementation<S extends SlotName> = Slots[S] extends ReadonlyMap<string, infer V> ? V : never
type ServicesOf<M extends PluginManifest> = [ProvidedBy<M>] extends [never]
  ? { readonly services?: undefined }
  : { readonly services: { readonly [K in ProvidedBy<M>]: Cradle[K] } & { readonly [K in Exclude<ServiceKey, ProvidedBy<M>>]?: never } }
type FillingOf<M extends PluginManifest> = [SlotOf<M>] extends [never]
  ? { readonly filling?: undefined }
  : { readonly filling: Implementation<SlotOf<M>> }

/** What `create` returns: everything that the manifest promises, and the lifecycle. Other objects that it made stay private. */
export type CreatedBy<M extends PluginManifest> = Life & ServicesOf<M> & FillingOf<M>

/** What a plugin says of its configuration when nothing is to be started. */
export interface ConfigReport {
  /** one whole sentence each, which names the key or the file */
  readonly problems: readonly string[]
  /** further files that belong to it, were read and are right */
  readonly files: readonly string[]
}

/** A plugin, typed by its own manifest. */
export interface PluginOf<M extends PluginManifest> {
  readonly manifest: M
  /**
   * Makes its services, when everything that it needs has started. It must not open or change anything, which `start` does: when `create` fails, nothing is stopped.
   * It may throw `SkipPlugin` as well.
   */
  create? (deps: DepsOf<M>, config: Static<M['config']>): CreatedBy<M> | Promise<CreatedBy<M>>
  /**
   * Says what is wrong with a configuration that the schema allows: keys that exclude each other, files that belong to it. Only `berth check-config` asks, so `start` has to refuse as well what the plugin
   * cannot run with. It must not change anything.
   * @param folder the one of the configuration's file
   */
  check? (config: Static<M['config']>, folder: string): Promise<ConfigReport>
}

/** The result of `create`, whatever the manifest. */
export interface Created extends Life {
  /** by key: exactly the services that the manifest's `provides` names */
  readonly services?: Partial<Cradle>
  /** the implementation for the slot that the manifest's `fills` names */
  readonly filling?: unknown
}

/** Any plugin, in the form that core handles. */
export interface Plugin {
  readonly manifest: PluginManifest
  create? (deps: AllDeps, config: Record<string, unknown>): Created | Promise<Created>
  check? (config: Record<string, unknown>, folder: string): Promise<ConfigReport>
}

/** Thrown by `create` or `start` when this host cannot run the plugin; it is then `skipped`, with this reason. */
export class SkipPlugin extends Error {
  override readonly name = 'SkipPlugin'
}

/** Types a plugin by its manifest. */
export function definePlugin<const M extends PluginManifest> (plugin: PluginOf<M>): Plugin
export function definePlugin (plugin: Plugin): Plugin {
  return plugin
}
