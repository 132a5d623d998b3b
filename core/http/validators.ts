// Compiles what checks requests, each kind once.
import { createRequire } from 'node:module'
import type { FastifyServerOptions } from 'fastify'
import { compileOnce } from './compile-once.ts'
import { KEYWORDS } from './schema-faults.ts'

type Compilers = NonNullable<NonNullable<FastifyServerOptions['schemaController']>['compilersFactory']>
/** Says whether a value is right, and in `errors` until the next call what is wrong. Fastify's type of it is joined with that of writers. */
type Validate = Exclude<ReturnType<ReturnType<NonNullable<Compilers['buildValidator']>>>, (data: unknown) => string>

// The very one that Fastify uses by itself, which is its dependency and not ours.
const { AjvCompiler } = createRequire(import.meta.resolve('fastify'))('@fastify/ajv-compiler')

/** For Fastify's `schemaController`. */
export const buildValidator = compileOnce<Validate>(AjvCompiler, (options) => new Set<string>([...KEYWORDS, ...Object(options).customOptions?.keywords ?? []]))
