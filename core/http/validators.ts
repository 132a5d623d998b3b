// Compiles the validators of requests, each once.
import { createRequire } from 'node:module'
import type { FastifyServerOptions } from 'fastify'
import { compileOnce } from './compile-once.ts'
import { KEYWORDS } from './schema-faults.ts'

type Compilers = NonNullable<NonNullable<FastifyServerOptions['schemaController']>['compilersFactory']>
/** Says whether a value is valid; until the next call, `errors` has its faults. Fastify's own type is joined with that of serializers. */
type Validate = Exclude<ReturnType<ReturnType<NonNullable<Compilers['buildValidator']>>>, (data: unknown) => string>

// The package that Fastify itself uses, which is its dependency and not ours.
const { AjvCompiler } = createRequire(import.meta.resolve('fastify'))('@fastify/ajv-compiler')

/** For Fastify's `schemaController`. */
export const buildValidator = compileOnce<Validate>(AjvCompiler, (options) => new Set<string>([...KEYWORDS, ...Object(options).customOptions?.keywords ?? []]))
