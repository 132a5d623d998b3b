// The secrets that builds may use: files in a folder of the operator. Names are checked when a build is requested; values are read when it starts, and kept only in memory.
import { open, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { InvalidRequest } from '../../../core/errors/common.ts'
import { hasCode } from '../../../core/errors/system-code.ts'
import { BuildFailed } from '../errors.ts'

/** the same limit as builders' */
const MAX_BYTES = 500 * 1024

export class SecretFolder {
  readonly #folder: string

  /** @param folder empty: there are no secrets */
  constructor (folder: string) {
    this.#folder = folder
  }

  /** @param ids of the form of `SECRET_ID` @throws invalid_request naming those that do not exist */
  async check (ids: readonly string[]): Promise<void> {
    for (const id of ids) {
      if (!await this.#exists(id)) throw InvalidRequest(`secrets: this server has no secret ${id}`)
    }
  }

  /** @throws build_failed when one is gone or too large; the error contains nothing of its content */
  async read (ids: readonly string[]): Promise<Map<string, Buffer>> {
    const values = new Map<string, Buffer>()
    for (const id of ids) {
      const value = await this.#read(id)
      if (value === undefined) throw BuildFailed(`this server has no secret ${id} any more`)
      if (value.length > MAX_BYTES) throw BuildFailed(`secret ${id} has more than ${MAX_BYTES} bytes`)
      values.set(id, value)
    }
    return values
  }

  async #exists (id: string): Promise<boolean> {
    if (this.#folder === '') return false
    try {
      return (await stat(join(this.#folder, id))).isFile()
    } catch (error) {
      if (hasCode(error, 'ENOENT', 'ENOTDIR')) return false
      throw error
    }
  }

  /** Reads at most one byte more than a secret may have. */
  async #read (id: string): Promise<Buffer | undefined> {
    if (!await this.#exists(id)) return undefined
    const file = await open(join(this.#folder, id), 'r')
    try {
      const buffer = Buffer.alloc(MAX_BYTES + 1)
      let length = 0
      for (;;) {
        const { bytesRead } = await file.read(buffer, length, buffer.length - length, length)
        length += bytesRead
        if (bytesRead === 0 || length === buffer.length) return Buffer.from(buffer.subarray(0, length))
      }
    } finally {
      await file.close()
    }
  }
}
