// Compiles the serializers of answers, each once.
import { createRequire } from 'node:module'
import { compileOnce } from './compile-once.ts'

// The package that Fastify itself uses, which is its dependency and not ours.
const { SerializerSelector } = createRequire(import.meta.resolve('fastify'))('@fastify/fast-json-stringify-compiler')

/** For Fastify's `schemaController`. */
export const buildSerializer = compileOnce<(data: unknown) => string>(SerializerSelector)
