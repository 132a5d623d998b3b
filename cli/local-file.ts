// Files of this host that are read for a server. One that cannot be read is a failure with its name.
import { open } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { Failure } from './failure.ts'

const CHUNK = 64 * 1024

/** Opens the file before anybody else is asked. At most `most` bytes are read: a file may grow after its size was told. */
export async function contentOf (file: string, most = Infinity): Promise<Readable> {
  const handle = await reading(file, open(file))
  let left = most
  return new Readable({
    read () {
      const buffer = Buffer.allocUnsafe(Math.min(CHUNK, left))
      reading(file, handle.read(buffer)).then(({ bytesRead }) => {
        left -= bytesRead
        this.push(bytesRead === 0 ? null : buffer.subarray(0, bytesRead))
      }, (error: Error) => this.destroy(error))
    },
    destroy (error, done) {
      handle.close().then(() => done(error), done)
    }
  })
}

/** A step of reading a file. What it throws becomes a failure that names the file. */
export async function reading<T> (file: string, step: Promise<T>): Promise<T> {
  try {
    return await step
  } catch (error) {
    throw error instanceof Failure ? error : new Failure(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
  }
}
