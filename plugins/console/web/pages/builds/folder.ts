// A folder of the reader's as the archive that a build takes: tar, compressed with gzip, made in the page.
import { createTarPacker } from 'modern-tar'

/** The API takes more; what is packed is held in memory here. */
const MOST_BYTES = 512 * 1024 * 1024

export interface FolderFile {
  /** in the folder, with slashes */
  readonly path: string
  readonly file: Blob
}

/** What was chosen by an input for folders: its paths begin with the folder's own name. */
export function filesOf (chosen: Iterable<File>): FolderFile[] {
  return [...chosen].map((file) => ({ path: file.webkitRelativePath.split('/').slice(1).join('/') || file.name, file }))
}

/** @throws Error when it has more than is packed here */
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
      // Whoever reads it hears of it, too.
      controller.error(error)
      throw error
    }
  }
}
