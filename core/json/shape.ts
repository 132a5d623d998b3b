// Whether JSON that a stranger sent has the form that its reader needs.
import type { Static, TSchema } from 'typebox'
import { Compile } from 'typebox/compile'

/**
 * A check of values by a schema, compiled at its first use. `Value.Check` goes through the schema anew for each value inside: with the megabytes that a registry or a guest may send that takes seconds, in which
 * nobody else is served.
 */
export function shape<S extends TSchema> (schema: S): (value: unknown) => value is Static<S> {
  let check: ((value: unknown) => boolean) | undefined
  return (value): value is Static<S> => {
    if (check === undefined) {
      const compiled = Compile(schema)
      check = (one) => compiled.Check(one)
    }
    return check(value)
  }
}
