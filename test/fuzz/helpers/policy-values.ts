// Policies with a fault somewhere: a right one in which a value, a key or a whole branch is another.
import type { Random } from '../fuzz.ts'

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

const deep = (depth: number): Json => { let value: Json = 1; for (let at = 0; at < depth; at++) value = at % 2 === 0 ? [value] : { a: value }; return value }

/** What nobody expects in the place of anything. */
export function oddValue (random: Random): Json {
  const way = random.below(24)
  if (way === 0) return deep(random.pick([1, 50, 600]))
  if (way === 1) return 'x'.repeat(random.pick([257, 513, 16_385, 200_000]))
  if (way === 2) return Array.from({ length: random.pick([257, 16_385, 70_000]) }, (): Json => 0)
  if (way === 3) return Object.fromEntries(Array.from({ length: random.pick([1, 300, 20_000]) }, (_, at): [string, Json] => [`k${at}`, at]))
  if (way === 4) return random.pick([0, -0, -1, 0.5, 1e300, -1e300, Number.MAX_SAFE_INTEGER, 2 ** 53, 2 ** 31, 2 ** 32])
  return random.pick<Json>([null, true, false, '', 'x', '${value}', '*.a.b', '*', '127.0.0.1', '::1', '10.0.0.0/8', '10.0.0.0/33', '1.2.3.4/', '__proto__', 'constructor', '\0', '\r\n', '\ud800', '\u00a0', '😀', ' x', '.', [], {}, [[]], [{}]])
}

/** The places of a value: each with the object or list that holds it. */
function places (value: Json, found: [Json[] | { [key: string]: Json }, string | number][] = []): [Json[] | { [key: string]: Json }, string | number][] {
  if (Array.isArray(value)) for (const [at, item] of value.entries()) { found.push([value, at]); places(item, found) }
  else if (value !== null && typeof value === 'object') for (const [key, item] of Object.entries(value)) { found.push([value, key]); places(item, found) }
  return found
}

function at (holder: Json[] | { [key: string]: Json }, key: string | number): Json {
  return (Array.isArray(holder) ? holder[Number(key)] : holder[key]) ?? null
}

function put (holder: Json[] | { [key: string]: Json }, key: string | number, value: Json): void {
  if (Array.isArray(holder)) holder[Number(key)] = value
  else Object.defineProperty(holder, key, { value, enumerable: true, configurable: true, writable: true })
}

/** Changes up to `most` places of it. */
export function disturb (random: Random, whole: Json, most: number): Json {
  const changed = structuredClone(whole)
  for (let count = random.below(most + 1); count > 0; count--) {
    const all = places(changed)
    if (all.length === 0) return changed
    const [holder, key] = random.pick(all)
    const way = random.below(6)
    if (way < 3) put(holder, key, oddValue(random))
    else if (way === 3) put(holder, Array.isArray(holder) ? holder.length : random.pick(['extra', '__proto__', 'constructor', 'toString', '']), oddValue(random))
    else if (way === 4) put(holder, key, structuredClone(at(...random.pick(all))))
    else if (Array.isArray(holder)) holder.splice(Number(key), 1)
    else delete holder[key]
  }
  return changed
}

/** The text of it, which is now and then no JSON or says a thing twice. */
export function jsonText (random: Random, value: Json): Buffer {
  const text = JSON.stringify(value)
  const way = random.below(14)
  if (way === 0) return Buffer.from(text.slice(0, random.below(text.length + 1)))
  if (way === 1) return Buffer.from(`\ufeff${text}`)
  if (way === 2) return random.mutate(Buffer.from(text), 3)
  if (way === 3 && text.startsWith('{')) return Buffer.from(`${text.slice(0, -1)}${text === '{}' ? '' : ','}"${random.pick(['__proto__', 'vms', 'name', 'constructor'])}":${JSON.stringify(oddValue(random))}}`)
  if (way === 4) return Buffer.from(random.pick(['[', '{"a":', '[{"a":']).repeat(random.pick([10, 1_000, 100_000])))
  if (way === 5) return Buffer.from(text.replace(/\d+/, random.pick(['1e999', '-1e999', '0x10', '01', 'NaN', '1'.repeat(400)])))
  return Buffer.from(text)
}
