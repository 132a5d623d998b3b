// The lines of one header, or of one set of trailers, on their way to Node or to an origin. Every line that is passed on goes through here, in every protocol.

/** Fields with a single value, by the list of Node's HTTP/2: it throws when one of them comes twice. */
const SINGLE = ['access-control-allow-credentials', 'access-control-max-age', 'access-control-request-method', 'age', 'authorization', 'content-length', 'content-location',
  'content-md5', 'content-range', 'content-type', 'date', 'dnt', 'etag', 'expires', 'from', 'host', 'if-modified-since', 'if-range', 'if-unmodified-since', 'last-modified',
  'location', 'max-forwards', 'proxy-authorization', 'range', 'referer', 'retry-after', 'tk', 'upgrade-insecure-requests', 'user-agent', 'x-content-type-options']
/** Node throws for these, too, but they are lists (RFC 9110), and several lines of a list are one (5.3). */
const LISTS = ['content-encoding', 'content-language', 'if-match', 'if-none-match']

/** Fields that may not be trailers: they frame, route, authenticate or describe a message that has been acted upon by then (RFC 9110, 6.5.1). */
const NOT_IN_TRAILERS = new Set(['authorization', 'content-encoding', 'content-length', 'content-range', 'content-type', 'cookie', 'host', 'max-forwards', 'set-cookie', 'trailer'])

const PLACES = new Map([...SINGLE, ...LISTS].map((name, place) => [name, place]))
// For each known field: the section that had it last, and where in it. Every line is looked up, so these are arrays rather than objects of a section.
const sections = new Uint32Array(PLACES.size)
const indexes = new Uint32Array(PLACES.size)
let latest = 0

/** A section is filled from its first line to its last before another one is begun. */
export class FieldSection {
  /** names and values in turn, in their order and spelling */
  readonly lines: string[] = []
  readonly #id: number
  #contradicts = false

  constructor () {
    latest = latest + 1 >>> 0
    this.#id = latest
  }

  /** Whether a field with a single value came with two different ones: a reader that takes the first reads another message than one that takes the last. */
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

/** Whether a field, its name in lower case, may be a trailer. */
export function mayTrail (name: string): boolean {
  return !NOT_IN_TRAILERS.has(name)
}
