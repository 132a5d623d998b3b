// A value of a Compose file, read as the type that it must have. A value of another type is refused with its name and line.
import { closest, distance } from 'fastest-levenshtein'
import { wrongUsage, type Failure } from '../failure.ts'
import type { Path, Source } from './source.ts'

const NEAR = 3

export class Place {
  readonly value: unknown
  readonly path: Path
  readonly #source: Source

  constructor (source: Source, value: unknown = source.value, path: Path = []) {
    this.#source = source
    this.value = value
    this.path = path
  }

  /** @example `compose.yaml:7: services.web.image: must be a text` */
  refusal (rule: string, hint?: string): Failure {
    const { file } = this.#source
    return wrongUsage(`${file}:${this.#source.lineOf(this.path)}: ${this.path.length === 0 ? '' : `${this.path.join('.')}: `}${rule}`, hint)
  }

  /** The fields of a map. A field that is not in `known` is refused; extensions (`x-…`) that are not named there are ignored. */
  fields (known: readonly string[], reasons: Readonly<Record<string, string>> = {}): ReadonlyMap<string, Place> {
    const fields = new Map<string, Place>()
    for (const [name, place] of this.entries()) {
      if (known.includes(name)) fields.set(name, place)
      else if (!name.startsWith('x-')) throw place.refusal(`is not supported${Object.hasOwn(reasons, name) ? `: ${reasons[name] ?? ''}` : ''}`, nearestOf(name, known))
    }
    return fields
  }

  /** A map with any names. No value counts as an empty map. */
  entries (): readonly (readonly [string, Place])[] {
    if (this.value == null) return []
    if (!this.isMap()) throw this.refusal('must be a map')
    return Object.entries(this.value as object).map(([name, value]) => [name, this.#below(name, value)])
  }

  items (): readonly Place[] {
    if (!Array.isArray(this.value)) throw this.refusal('must be a list')
    return this.value.map((value, index) => this.#below(index, value))
  }

  isMap (): boolean {
    return typeof this.value === 'object' && this.value !== null && !Array.isArray(this.value)
  }

  isList (): boolean {
    return Array.isArray(this.value)
  }

  /** A scalar, as it is written. */
  text (): string {
    if (typeof this.value === 'string') return this.value
    if (typeof this.value === 'number' || typeof this.value === 'boolean') return String(this.value)
    throw this.refusal('must be a text')
  }

  oneOf<T extends string> (known: readonly T[]): T {
    const text = this.text()
    const found = known.find((each) => each === text)
    if (found === undefined) throw this.refusal(`${text} is not supported; it is one of ${known.join(', ')}`)
    return found
  }

  /** A variable may give a number as a text. */
  integer (least: number): number {
    const text = this.text()
    if (!/^\d{1,9}$/.test(text) || Number(text) < least) throw this.refusal(`must be a whole number of ${least} or more`)
    return Number(text)
  }

  flag (): boolean {
    const text = this.text()
    if (text !== 'true' && text !== 'false') throw this.refusal('must be true or false')
    return text === 'true'
  }

  #below (step: string | number, value: unknown): Place {
    return new Place(this.#source, value, [...this.path, step])
  }
}

function nearestOf (name: string, known: readonly string[]): string | undefined {
  const near = known.length === 0 ? undefined : closest(name, [...known])
  return near !== undefined && distance(near, name) < NEAR ? `did you mean ${near}?` : undefined
}
