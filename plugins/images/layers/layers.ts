// What is kept of an image's layers. A stranger wrote manifest and history, so both are cut to what people can read.
import { Type } from 'typebox'
import { Value } from 'typebox/value'

/** More than any container runtime can stack; of the others only the number is kept. */
export const MOST_LAYERS = 256
const LONGEST_MEDIA_TYPE = 200
const LONGEST_COMMAND = 500

/** A layer as a manifest names it. */
export interface Layer {
  readonly digest: string
  readonly mediaType: string | undefined
  /** as it is transferred, `bytes` */
  readonly sizeBytes: number
}

/** All layers of a manifest. */
export interface Layers {
  readonly count: number
  /** the lowest first, MOST_LAYERS at most */
  readonly kept: readonly Layer[]
}

interface Descriptor { readonly digest: string, readonly size?: number, readonly mediaType?: string }

export function layersOf (descriptors: readonly Descriptor[]): Layers {
  return {
    count: descriptors.length,
    kept: descriptors.slice(0, MOST_LAYERS).map(({ digest, size, mediaType }) => ({ digest, mediaType: mediaType?.slice(0, LONGEST_MEDIA_TYPE), sizeBytes: wholeSize(size) }))
  }
}

function wholeSize (size: number | undefined): number {
  return size !== undefined && Number.isSafeInteger(size) && size > 0 ? size : 0
}

const Configuration = Type.Object({
  rootfs: Type.Object({ diff_ids: Type.Array(Type.String()) }),
  history: Type.Array(Type.Object({ created_by: Type.Optional(Type.String()), empty_layer: Type.Optional(Type.Boolean()) }))
})

/** The command that made each layer, `''` where none is named, from the configuration of an image; undefined when its history does not fit its layers. */
export function historyOf (configuration: unknown): readonly string[] | undefined {
  if (!Value.Check(Configuration, configuration)) return undefined
  const commands = configuration.history.filter(({ empty_layer: isEmpty }) => isEmpty !== true).map(({ created_by: command }) => command ?? '')
  return commands.length === configuration.rootfs.diff_ids.length ? commands.slice(0, MOST_LAYERS).map((command) => command.slice(0, LONGEST_COMMAND)) : undefined
}
