// Answers that are kept as JSON: serialising and hashing them again for each reader would be the larger part of a read.
import type { FastifyReply } from 'fastify'
import { entityTag } from './entity-tag.ts'

const JSON_TYPE = 'application/json; charset=utf-8'

/** One thing of the API as it is answered. */
export class KeptJson {
  readonly text: string
  #tag: string | undefined

  constructor (text: string) {
    this.text = text
  }

  get tag (): string {
    this.#tag ??= entityTag(this.text)
    return this.#tag
  }
}

/** A list of such things. It is put together again when one of them has another text, or another place. */
export class KeptList {
  #items: readonly KeptJson[] = []
  #bytes = Buffer.from('[]')
  #tag = entityTag(this.#bytes)

  /** Answers with the items, in this order. */
  send (reply: FastifyReply, items: readonly KeptJson[]): FastifyReply {
    if (items.length !== this.#items.length || items.some((item, index) => item !== this.#items[index])) {
      this.#items = items
      this.#bytes = Buffer.from(`[${items.map(({ text }) => text).join(',')}]`)
      this.#tag = entityTag(this.#bytes)
    }
    return reply.type(JSON_TYPE).header('etag', this.#tag).send(this.#bytes)
  }
}

/** JSON of which the larger part was kept, with the tag of the whole. */
export interface KeptBytes {
  readonly bytes: Buffer
  readonly tag: string
}

export function sendBytes (reply: FastifyReply, { bytes, tag }: KeptBytes): FastifyReply {
  return reply.type(JSON_TYPE).header('etag', tag).send(bytes)
}

export function sendKept (reply: FastifyReply, { text, tag }: KeptJson): FastifyReply {
  return reply.type(JSON_TYPE).header('etag', tag).send(text)
}
