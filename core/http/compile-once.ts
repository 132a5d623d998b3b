// Compilers of schemas that compile each kind once. Fastify compiles anew for each route and status, and each time with every named schema, which most of a
// server's start was spent on.

type Schemas = Readonly<Record<string, unknown>>
/** `route` has a `schema`, whatever Fastify's types say. */
export type Compile<Compiled> = (route: unknown) => Compiled
/** As Fastify's `schemaController` has them: a compiler for these named schemas and these options. */
export type BuildCompiler<Compiled> = (named: unknown, options: unknown) => Compile<Compiled>

/** What is compiled is kept by what it was compiled of, for every server of this process. */
export function compileOnce<Compiled> (newBuilder: () => BuildCompiler<Compiled>): BuildCompiler<Compiled> {
  const compiled = new Map<string, Compiled>()
  const shared = newBuilder()
  return (named, options) => (route) => {
    const { schema } = Object(route)
    const needed = namedIn(schema, Object(named))
    const key = JSON.stringify([schema, needed, options])
    const known = compiled.get(key)
    if (known !== undefined) return known
    // A compiler keeps a schema with a name under that name, for all that it compiles later.
    const build = hasName(schema) ? newBuilder() : shared
    const made = build(needed, options)(route)
    compiled.set(key, made)
    return made
  }
}

/** The named schemas that a schema refers to, itself or through others. */
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
