// Compiles what writes answers, each kind once. Fastify would do it anew for each route and status, and each time go through every named schema, which most of
// a server's start was spent on.
import { createRequire } from 'node:module'

type Schemas = Readonly<Record<string, unknown>>
type Serialize = (data: unknown) => string
type Compile = (route: { readonly schema?: unknown }) => Serialize
type BuildCompiler = (named: unknown, options: unknown) => Compile

// The very one that Fastify uses by itself, which is its dependency and not ours.
const { SerializerSelector } = createRequire(import.meta.resolve('fastify'))('@fastify/fast-json-stringify-compiler')
const buildCompiler: BuildCompiler = SerializerSelector()

/** What is compiled, by what it was compiled of. */
const compiled = new Map<string, Serialize>()

/** For Fastify's `schemaController`. */
export const buildSerializer: BuildCompiler = (named, options) => (route) => {
  const needed = namedIn(route.schema, Object(named))
  const key = JSON.stringify([route.schema, needed, options])
  const known = compiled.get(key)
  if (known !== undefined) return known
  const made = buildCompiler(needed, options)(route)
  compiled.set(key, made)
  return made
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
