// A memory image whose memory is kept compressed: what stands on disk, and in which order that changes.
//
// The compressed memory stands in the folder of the image. Which of the two files counts is what `image.json` says, and it says so in one step; the
// other is a leftover, and may go at any time. So a crash between any two steps leaves one whole memory, and `tidyImage` removes the rest.
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { compressedName, type CompressionAlgorithm } from '../../../core/library/compressed-memory.ts'
import type { StoredMemory } from '../contract.ts'
import { changesPath, rewriteImage, type ImageStage, type StoredImage } from '../memory-image/files.ts'
import type { InstancePaths } from '../folder/paths.ts'

const ALGORITHMS = ['zstd', 'lz4'] as const satisfies readonly CompressionAlgorithm[]

export function compressedPath (paths: InstancePaths, stage: ImageStage, algorithm: CompressionAlgorithm): string {
  return join(paths.image[stage], compressedName(algorithm))
}

/** Where the memory of a whole image is. */
export function memoryIn (paths: InstancePaths, { compressed, onBase }: StoredImage): StoredMemory {
  if (onBase !== undefined) return { path: paths.base.memory, ...onBase.changes ? { changes: changesPath(paths, 'whole') } : {} }
  if (compressed === undefined) return { path: paths.memory }
  return { path: compressedPath(paths, 'whole', compressed.algorithm), algorithm: compressed.algorithm }
}

/** Makes the compressed memory, which is on disk, the one that counts. */
export async function noteCompressed (paths: InstancePaths, stored: StoredImage, compressed: NonNullable<StoredImage['compressed']>): Promise<void> {
  await rewriteImage(paths, { ...stored, compressed })
}

/** Removes what a crash has left: the file that does not count. For a whole image that nobody works on. */
export async function tidyImage (paths: InstancePaths, { compressed }: StoredImage): Promise<void> {
  if (compressed !== undefined) await rm(paths.memory, { force: true })
  const names = await readdir(paths.image.whole)
  const leftovers = [
    ...ALGORITHMS.filter((algorithm) => algorithm !== compressed?.algorithm).map(compressedName),
    // left by a rewrite of `image.json`
    ...names.filter((name) => name.startsWith('.image.json.'))
  ].filter((name) => names.includes(name))
  for (const name of leftovers) await rm(join(paths.image.whole, name), { force: true })
}
