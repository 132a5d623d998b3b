// Packs a folder of the user into the archive that a build takes: tar, compressed with gzip, in the browser.
import { createTarPacker } from 'modern-tar'

/** The API takes more; here the archive is held in memory. */
const MOST_BYTES = 512 * 1024 * 1024

export interface FolderFile {
  /** in the folder, with slashes */
  readonly path: string
  readonly file: Blob
}

/** The files chosen with an input for folders: their paths begin with the folder's own name. */
export function filesOf (chosen: Iterable<File>): FolderFile[] {
  return [...chosen].map((file) => ({ path: file.webkitRelativePath.split('/').slice(1).join('/') || file.name, file }))
}

/** @throws Error when it is larger than the limit */
export async function pack (files: readonly FolderFile[]): Promise<Blob> {
  const bytes = files.reduce((sum, { file }) => sum + file.size, 0)
  if (bytes > MOST_BYTES) throw new Error('The folder has more than 512 MiB: `berth build FOLDER` takes it.')
  const { readable, controller } = createTarPacker()
  const [archive] = await Promise.all([new Response(readable.pipeThrough(new CompressionStream('gzip'))).blob(), add()])
  return archive

  async function add (): Promise<void> {
    try {
      for (const { path, file } of files) await file.stream().pipeTo(controller.add({ name: path, size: file.size, mode: 0o755, uid: 0, gid: 0, mtime: new Date(0) }))
      controller.finalize()
    } catch (error) {
      // The stream's reader gets the error, too.
      controller.error(error)
      throw error
    }
  }
}
