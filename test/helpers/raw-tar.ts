// Makes tar archives byte by byte, also such as no tool makes.

export interface RawEntry {
  readonly path: string | Buffer
  /** the flag of the header; default: a file */
  readonly type?: string
  readonly content?: Buffer | string
  readonly target?: string
  readonly mode?: number
  readonly uid?: number
  readonly gid?: number
  /** what the header says, whatever the content is */
  readonly sizeBytes?: number
  readonly rawSize?: Buffer
  readonly rawUid?: Buffer
}

const BLOCK = 512

/** what ends an archive */
export const end = Buffer.alloc(2 * BLOCK)

export function entry ({ path, type = '0', content = '', target = '', mode = 0o644, uid = 0, gid = 0, sizeBytes, rawSize, rawUid }: RawEntry): Buffer {
  const bytes = Buffer.from(content)
  const header = Buffer.alloc(BLOCK)
  const octal = (value: number, at: number, length: number): void => { header.write(`${value.toString(8).padStart(length - 1, '0')}\0`, at, 'latin1') }
  Buffer.from(path).copy(header, 0, 0, 100)
  octal(mode, 100, 8)
  octal(uid, 108, 8)
  octal(gid, 116, 8)
  if ((sizeBytes ?? 0) >= 8 ** 11) {
    header[124] = 0x80
    header.writeBigUInt64BE(BigInt(sizeBytes ?? 0), 128)
  } else octal(sizeBytes ?? bytes.length, 124, 12)
  octal(1_700_000_000, 136, 12)
  header.write(type, 156, 'latin1')
  header.write(target, 157, 100)
  header.write('ustar\x0000', 257, 'latin1')
  rawSize?.copy(header, 124)
  rawUid?.copy(header, 108)
  sum(header)
  return Buffer.concat([header, bytes, Buffer.alloc((BLOCK - bytes.length % BLOCK) % BLOCK)])
}

/** The bytes with others at one place, which the checksum does not know. */
export function block (bytes: Buffer, at: number, text: string): Buffer {
  const changed = Buffer.from(bytes)
  changed.write(text, at, 'latin1')
  return changed
}

/** An entry whose name is in a record of its own, as GNU has it. */
export function longName (name: string, rest: Omit<RawEntry, 'path'>): Buffer[] {
  return [entry({ path: '././@LongLink', type: 'L', content: `${name}\0` }), entry({ ...rest, path: name.slice(0, 50) })]
}

/** Records ahead of an entry, or for all that follow. */
export function pax (records: Readonly<Record<string, string>>, of: RawEntry | undefined, type: 'x' | 'g' = 'x'): Buffer[] {
  const text = Object.entries(records).map(([key, value]) => {
    const rest = ` ${key}=${value}\n`
    const length = Buffer.byteLength(rest)
    let digits = String(length).length
    while (String(length + digits).length !== digits) digits++
    return `${length + digits}${rest}`
  }).join('')
  return [entry({ path: 'PaxHeader', type, content: text }), ...of === undefined ? [] : [entry(of)]]
}

function sum (header: Buffer): void {
  header.write(' '.repeat(8), 148)
  header.write(`${header.reduce((total, byte) => total + byte, 0).toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
}
