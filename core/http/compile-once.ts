// Compilers of schemas that compile each schema once, at its first use. Fastify compiles one for each route and status, all of them at the start, and each time with every named
// schema, which took most of a server's start.
import { checkSchema } from './schema-faults.ts'

type Schemas = Readonly<Record<string, unknown>>
type Work = (...values: readonly unknown[]) => unknown
/** `route` has a `schema`, though Fastify's types do not say so. */
export type Compile<Compiled> = (route: unknown) => Compiled
/** The form that Fastify's `schemaController` has: a compiler for these named schemas and these options. */
export type BuildCompiler<Compiled> = (named: unknown, options: unknown) => Compile<Compiled>

/** schemas that were asked for and are not compiled yet */
const waiting = new Set<() => unknown>()

/** Compiles everything that was asked for so far. Throws a compiler's complaint about a schema. */
export function compileAll (): void {
  for (const compile of waiting) compile()
}

/** Compiled functions are kept under their schemas, for every server of this process. A schema with an obvious fault throws at once. */
export function compileOnce<Compiled> (newBuilder: () => BuildCompiler<Compiled>, knownKeywords?: (options: unknown) => ReadonlySet<string>): BuildCompiler<Compiled> {
  const compiled = new Map<string, Compiled>()
  const shared = newBuilder()
  return (named, options) => (route) => {
    const { schema } = Object(route)
    const needed = namedIn(schema, Object(named))
    const key = JSON.stringify([schema, needed, options])
    const known = compiled.get(key)
    if (known !== undefined) return known
    for (const each of [schema, ...Object.values(needed)]) checkSchema(each, needed, knownKeywords?.(options))
    const made = atFirstUse(() => {
      // A compiler remembers a schema with a name, and would use it for everything that it compiles later.
      const build = hasName(schema) ? newBuilder() : shared
      return build(needed, options)(route)
    })
    compiled.set(key, made)
    return made
  }
}

function atFirstUse<Compiled> (make: () => Compiled): Compiled {
  let made: Work | undefined
  const compile = (): Work => {
    if (made === undefined) {
      made = make() as Work
      waiting.delete(compile)
    }
    return made
  }
  waiting.add(compile)
  // The caller reads the faults from `errors` after a check.
  const use: unknown = Object.defineProperty((...values: readonly unknown[]) => compile()(...values), 'errors', { get: () => made === undefined ? null : Reflect.get(made, 'errors') })
  return use as Compiled
}

/** The named schemas that a schema refers to, directly or through others. */
function namedIn (schema: unknown, named: Schemas): Schemas {
  const found: Record<string, unknown> = {}
  const waiting: unknown[] = [schema]
  while (waiting.length > 0) {
    const value = waiting.pop()
    if (typeof value !== 'object' || value === null) continue
    for (const [key, item] of Object.entries(value)) {
      waiting.push(item)
      if (key !== '$ref' || typeof item !== 'string') continue
      const name = item.split('#', 1)[0] ?? ''
      if (!Object.hasOwn(named, name) || Object.hasOwn(found, name)) continue
      found[name] = named[name]
      waiting.push(named[name])
    }
  }
  return found
}

function hasName (schema: unknown): boolean {
  return JSON.stringify(schema)?.includes('"$id":') ?? false
}
