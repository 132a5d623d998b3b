// The shapes that many routes share.
import { Type, type Static, type TSchema, type TUnsafe } from 'typebox'

const TAG_TEXT = '^[A-Za-z0-9 _.:/=+@-]*$'
const TAG_RULE = 'may have letters, digits, spaces and _ . : / = + @ - only'

/** Tags of one object: at most 50, keys of 1 to 128 and values of at most 256 characters of `A-Z a-z 0-9 space _ . : / = + @ -`. */
export const Tags = Type.Unsafe<Record<string, string>>({
  type: 'object',
  description: 'Free labels, as key and value',
  maxProperties: 50,
  propertyNames: { type: 'string', minLength: 1, maxLength: 128, pattern: TAG_TEXT, rule: `keys have 1 to 128 characters and ${TAG_RULE}` },
  additionalProperties: { type: 'string', maxLength: 256, pattern: TAG_TEXT, rule: `must be a string of at most 256 characters and ${TAG_RULE}` }
})

/**
 * An object with any keys, whose values have one shape. Not `Type.Record`: that is a pattern of keys, `^.*$`, which a key with a line break does not match, so that nobody would look at its value.
 * Its keys are for the caller to check.
 */
export function mapOf<T extends TSchema> (schema: T, options: { readonly description?: string, readonly minProperties?: number } = {}): TUnsafe<Record<string, Static<T>>> {
  return Type.Unsafe<Record<string, Static<T>>>({ type: 'object', additionalProperties: schema, ...options })
}

/** UTC with milliseconds, ISO 8601 */
export const Timestamp = Type.String({ format: 'date-time' })

/** Lower case letters, digits and inner dashes, at most 63: usable as a host name. */
export const ResourceName = Type.String({ minLength: 1, maxLength: 63, pattern: '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$', rule: 'must have 1 to 63 lower case letters, digits or dashes, and begin and end with a letter or digit' })

export const ErrorBody = Type.Object({
  code: Type.String({ description: 'Stable, for programs' }),
  message: Type.String({ description: 'One sentence, for people' }),
  details: Type.Optional(Type.Array(Type.Object({
    code: Type.String(),
    message: Type.String()
  }, { additionalProperties: false })))
}, { $id: 'Error', additionalProperties: false })

/** The schema, or null. Written as a list of types where possible, since that serialises faster than a union. */
export function nullable<T extends TSchema> (schema: T): TUnsafe<Static<T> | null> {
  const plain: Record<string, unknown> = Object.fromEntries(Object.entries(schema))
  const { type, enum: values } = plain
  if (typeof type !== 'string' || '$id' in plain) return Type.Unsafe<Static<T> | null>({ anyOf: [schema, { type: 'null' }] })
  return Type.Unsafe<Static<T> | null>({
    ...plain,
    type: [type, 'null'],
    ...(Array.isArray(values) ? { enum: [...values, null] } : {})
  })
}

/** One of some strings, as a plain `enum`. */
export function oneOf<const V extends string> (values: readonly V[], options: { description?: string, default?: V } = {}): TUnsafe<V> {
  return Type.Unsafe<V>({ type: 'string', enum: [...values], ...options })
}

/**
 * The schema that another plugin has named by its `$id`. Only for answers, since its type is not known here and the plugin that makes the answer is responsible for it. That
 * plugin must be mounted before, which is the case for a plugin that requires one of its services.
 */
export function namedSchema (id: string): TUnsafe<unknown> {
  return Type.Unsafe<unknown>({ $ref: `${id}#` })
}
