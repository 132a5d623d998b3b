// Reads Server-Sent Events as the decoder of the Go SDK does, which the peer's command line is built on: every empty line ends an event, with data or without, and
// the data of each event must be JSON.

export interface DecodedEvent { readonly id: string | undefined, readonly data: unknown }

/** The events of an answer, as they come. @throws SyntaxError for an empty line without an event before it */
export async function * decodeStream (body: AsyncIterable<Uint8Array> | null): AsyncGenerator<DecodedEvent, void, void> {
  const decoder = new TextDecoder()
  const lines = new LineDecoder()
  for await (const chunk of body ?? []) yield * lines.push(decoder.decode(chunk, { stream: true }))
}

/** The events of a whole answer. @throws SyntaxError as above */
export function decodeText (text: string): DecodedEvent[] {
  return new LineDecoder().push(text)
}

class LineDecoder {
  #rest = ''
  #data = ''
  #id: string | undefined

  push (text: string): DecodedEvent[] {
    const lines = (this.#rest + text).split('\n')
    this.#rest = lines.pop() ?? ''
    return lines.flatMap((line) => this.#line(line))
  }

  #line (line: string): DecodedEvent[] {
    if (line === '') {
      const event = { id: this.#id, data: JSON.parse(this.#data) }
      this.#data = ''
      this.#id = undefined
      return [event]
    }
    const [, name = '', value = ''] = /^([^:]*):? ?(.*)$/.exec(line) ?? []
    if (name === 'data') this.#data += `${value}\n`
    if (name === 'id') this.#id = value
    return []
  }
}
