// Reads a "newc" cpio archive by its format's description, apart from the product's writer.

export interface ReadEntry { readonly path: string, readonly mode: number, readonly content: Buffer, readonly device: readonly [number, number] }

export function readCpio (archive: Buffer): ReadEntry[] {
  const entries: ReadEntry[] = []
  let at = 0
  for (;;) {
    if (at % 4 !== 0) throw new Error(`a header at ${at} is not aligned`)
    if (archive.toString('latin1', at, at + 6) !== '070701') throw new Error(`no header at ${at}`)
    const number = (index: number) => parseInt(archive.toString('latin1', at + 6 + index * 8, at + 14 + index * 8), 16)
    const nameEnd = at + 110 + number(11)
    const path = archive.toString('utf8', at + 110, nameEnd - 1)
    if (archive[nameEnd - 1] !== 0) throw new Error('a name without its end')
    if (path === 'TRAILER!!!') return entries
    const start = Math.ceil(nameEnd / 4) * 4
    entries.push({ path, mode: number(1), content: archive.subarray(start, start + number(6)), device: [number(9), number(10)] })
    at = Math.ceil((start + number(6)) / 4) * 4
  }
}
