// Frames of every type, with every kind of flags and lengths that no type has, for either side of a connection over HTTP/2.
import { CONTINUATION, frame } from './frames.ts'

const TYPES = [...Array.from({ length: 14 }, (_, type) => type), 0x20, 0xff]
/** none, the end of a stream, of a header, padding, a priority, all of them */
const FLAGS = [0, 1, 4, 8, 0x20, 0xff]
const LENGTHS = [0, 4, 5, 8]

export interface GridFrame { readonly name: string, bytes (stream: number): Buffer }

/** Each is of the stream that it is asked for; of a connection's own types, that is one more fault. */
export function frameGrid (): GridFrame[] {
  return TYPES.flatMap(type => FLAGS.flatMap(flags => LENGTHS.map((length): GridFrame => ({
    name: `frame ${type === CONTINUATION ? 'of continuation' : type}, flags ${flags}, ${length} bytes`,
    bytes: stream => frame(type, flags, stream, Buffer.alloc(length))
  }))))
}
