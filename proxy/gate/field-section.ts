// The lines of one header, or of one set of trailers, on their way to Node or to an origin: every line that is passed on goes through here, whatever protocol brought it.

/** Fields with one value, as Node's HTTP/2 has them: it throws when one of them comes twice. */
const SINGLE = ['access-control-allow-credentials', 'access-control-max-age', 'access-control-request-method', 'age', 'authorization', 'content-length', 'content-location',
  'content-md5', 'content-range', 'content-type', 'date', 'dnt', 'etag', 'expires', 'from', 'host', 'if-modified-since', 'if-range', 'if-unmodified-since', 'last-modified',
  'location', 'max-forwards', 'proxy-authorization', 'range', 'referer', 'retry-after', 'tk', 'upgrade-insecure-requests', 'user-agent', 'x-content-type-options']
/** Node throws for these, too, but they are lists (RFC 9110), and several lines of a list are one (5.3). */
const LISTS = ['content-encoding', 'content-language', 'if-match', 'if-none-match']

/** What cannot come behind a body: it frames, routes, authenticates or describes a message that has been acted upon by then (RFC 9110, 6.5.1). */
const NOT_IN_TRAILERS = new Set(['authorization', 'content-encoding', 'content-length', 'content-range', 'content-type', 'cookie', 'host', 'max-forwards', 'set-cookie', 'trailer'])

const PLACES = new Map([...SINGLE, ...LISTS].map((name, place) => [name, place]))
// Which section had a field last, and where in it: looked up for every line, so they are no objects of the section.
const sections = new Uint32Array(PLACES.size)
const indexes = new Uint32Array(PLACES.size)
let latest = 0

/** One section at a time is filled, from its first line to its last. */
export class FieldSection {
  /** names and values in turn, in their order and spelling */
  readonly lines: string[] = []
  readonly #id: number
  #contradicts = false

  constructor () {
    latest = latest + 1 >>> 0
    this.#id = latest
  }

  /** Whether a field that has one value came with two: whoever reads the first reads another message than whoever reads the last. */
  get contradicts (): boolean {
    return this.#contradicts
  }

  /** @param name in lower case */
  add (name: string, written: string, value: string): void {
    const place = PLACES.get(name)
    if (place === undefined) {
      this.lines.push(written, value)
    } else if (sections[place] === this.#id) {
      this.#again(place, value)
    } else {
      sections[place] = this.#id
      indexes[place] = this.lines.length + 1
      this.lines.push(written, value)
    }
  }

  #again (place: number, value: string): void {
    const index = indexes[place] ?? 0
    if (place >= SINGLE.length) this.lines[index] += `, ${value}`
    else if (this.lines[index] !== value) this.#contradicts = true
  }
}

/** Whether a field, its name in lower case, may come behind a body. */
export function mayTrail (name: string): boolean {
  return !NOT_IN_TRAILERS.has(name)
}
