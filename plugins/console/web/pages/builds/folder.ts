// A folder of the reader's as the archive that a build takes: tar, compressed with gzip, made in the page.

/** The API takes more; what is packed is held in memory here. */
const MOST_BYTES = 512 * 1024 * 1024
const BLOCK = 512
const LONGEST_NAME = 100
const LONGEST_PREFIX = 155

export interface FolderFile {
  /** in the folder, with slashes */
  readonly path: string
  readonly file: Blob
}

/** What was chosen by an input for folders: its paths begin with the folder's own name. */
export function filesOf (chosen: Iterable<File>): FolderFile[] {
  return [...chosen].map((file) => ({ path: file.webkitRelativePath.split('/').slice(1).join('/') || file.name, file }))
}

/** @throws Error that names the file */
export async function pack (files: readonly FolderFile[]): Promise<Blob> {
  const bytes = files.reduce((sum, { file }) => sum + file.size, 0)
  if (bytes > MOST_BYTES) throw new Error('The folder has more than 512 MiB: `berth build FOLDER` takes it.')
  const parts = files.flatMap(({ path, file }) => [header(path, file.size), file, new Uint8Array((BLOCK - file.size % BLOCK) % BLOCK)])
  const tar = new Blob([...parts, new Uint8Array(2 * BLOCK)] as BlobPart[])
  return await new Response(tar.stream().pipeThrough(new CompressionStream('gzip'))).blob()
}

/** The header of a file in the format ustar (POSIX.1-1988). */
function header (path: string, size: number): Uint8Array {
  const encode = (text: string): Uint8Array => new TextEncoder().encode(text)
  const block = new Uint8Array(BLOCK)
  const put = (at: number, text: string): void => { block.set(encode(text), at) }
  const octal = (value: number, digits: number): string => `${value.toString(8).padStart(digits, '0')}\0`
  const { name, prefix } = divided(path)
  put(0, name)
  put(100, octal(0o755, 7))
  put(108, octal(0, 7))
  put(116, octal(0, 7))
  put(124, octal(size, 11))
  put(136, octal(0, 11))
  put(148, '        ')
  put(156, '0')
  put(257, 'ustar\0' + '00')
  put(345, prefix)
  put(148, `${octal(block.reduce((sum, byte) => sum + byte, 0), 6)} `)
  return block
}

function divided (path: string): { readonly name: string, readonly prefix: string } {
  const length = (text: string): number => new TextEncoder().encode(text).length
  if (length(path) <= LONGEST_NAME) return { name: path, prefix: '' }
  const parts = path.split('/')
  for (let count = 1; count < parts.length; count++) {
    const prefix = parts.slice(0, count).join('/')
    const name = parts.slice(count).join('/')
    if (length(name) <= LONGEST_NAME && length(prefix) <= LONGEST_PREFIX) return { name, prefix }
  }
  throw new Error(`The path ${path} is too long for the archive: \`berth build FOLDER\` takes it.`)
}
