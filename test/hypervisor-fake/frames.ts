// The guest's side of the agent protocol (plugins/guest/init/PROTOCOL.md): syncs, frames and fields. Trusting, since its host is ours.
import type { FieldWriter } from '../../plugins/guest/link/fields.ts'

export const MAGIC = Buffer.concat([Buffer.from([0xb7]), Buffer.from('BERTH1\n', 'latin1')])
const SYNC_BYTES = 24
const HEADER_BYTES = 12

export interface Frame { readonly type: number, readonly channel: number, readonly stream: number, readonly payload: Buffer }
export type FromHost = { readonly sync: Buffer } | Frame

/** Splits what the host sends. Before the first sync, everything else is dropped. */
export class HostReader {
  #rest: Buffer = Buffer.alloc(0)
  #synced = false

  push (chunk: Buffer): FromHost[] {
    this.#rest = Buffer.concat([this.#rest, chunk])
    const found: FromHost[] = []
    for (let next = this.#next(); next !== undefined; next = this.#next()) found.push(next)
    return found
  }

  #next (): FromHost | undefined {
    if (!this.#synced) {
      const at = this.#rest.indexOf(MAGIC)
      this.#rest = this.#rest.subarray(at === -1 ? Math.max(0, this.#rest.length - MAGIC.length + 1) : at)
    }
    if (this.#rest.subarray(0, MAGIC.length).equals(MAGIC)) {
      if (this.#rest.length < SYNC_BYTES) return undefined
      this.#synced = true
      return { sync: this.#take(SYNC_BYTES) }
    }
    if (!this.#synced || this.#rest.length < HEADER_BYTES) return undefined
    const length = this.#rest.readUInt32LE(0)
    if (this.#rest.length < HEADER_BYTES + length) return undefined
    const frame = this.#take(HEADER_BYTES + length)
    return { channel: frame.readUInt32LE(4), type: frame.readUInt8(8), stream: frame.readUInt8(9), payload: frame.subarray(HEADER_BYTES) }
  }

  #take (bytes: number): Buffer {
    const taken = this.#rest.subarray(0, bytes)
    this.#rest = this.#rest.subarray(bytes)
    return taken
  }
}

export function frame (type: number, channel: number, payload: FieldWriter | Buffer, stream = 0): Buffer {
  const bytes = Buffer.isBuffer(payload) ? payload : payload.finish()
  const header = Buffer.alloc(HEADER_BYTES)
  header.writeUInt32LE(bytes.length, 0)
  header.writeUInt32LE(channel, 4)
  header[8] = type
  header[9] = stream
  return Buffer.concat([header, bytes])
}

/** All fields of a payload, in order. */
export function readFields (payload: Buffer): Array<readonly [tag: number, value: Buffer]> {
  const fields: Array<readonly [number, Buffer]> = []
  for (let at = 0; at < payload.length;) {
    const end = at + 5 + payload.readUInt32LE(at + 1)
    fields.push([payload.readUInt8(at), payload.subarray(at + 5, end)])
    at = end
  }
  return fields
}
