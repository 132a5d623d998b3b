// Fields that may be written as a map or as a list of NAME=VALUE.
import type { Place } from './place.ts'

/** Null for a name without a value. */
export function pairsOf (place: Place | undefined): ReadonlyMap<string, string | null> {
  const pairs = new Map<string, string | null>()
  if (place === undefined) return pairs
  if (place.isList()) {
    for (const item of place.items()) {
      const text = item.text()
      const at = text.indexOf('=')
      const name = at < 0 ? text : text.slice(0, at)
      if (name === '') throw item.refusal('must be NAME=VALUE')
      pairs.set(name, at < 0 ? null : text.slice(at + 1))
    }
  } else for (const [name, value] of place.entries()) pairs.set(name, value.value === null ? null : value.text())
  return pairs
}

const TAG_TEXT = /^[A-Za-z0-9 _.:/=+@-]*$/
export const OWN_PREFIX = 'berth.compose.'

/** Labels become tags, which allow fewer characters. */
export function tagsOf (place: Place | undefined): Record<string, string> {
  const tags: Record<string, string> = {}
  if (place === undefined) return tags
  for (const [name, value] of pairsOf(place)) {
    const text = value ?? ''
    if (name.length > 128 || text.length > 256 || !TAG_TEXT.test(name) || !TAG_TEXT.test(text)) throw place.refusal(`${name}: tags have names of at most 128 and values of at most 256 letters, digits, blanks and _.:/=+@-`)
    if (name.startsWith(OWN_PREFIX)) throw place.refusal(`${name}: names that begin with ${OWN_PREFIX} are this command's own`)
    tags[name] = text
  }
  return tags
}
