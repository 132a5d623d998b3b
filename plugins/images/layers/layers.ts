// What is kept of an image's layers. A stranger wrote the manifest, so it is cut to what people can read.

/** More than any container runtime can stack; of the others only the number is kept. */
export const MOST_LAYERS = 256
const LONGEST_MEDIA_TYPE = 200

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
