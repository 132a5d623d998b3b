// The API for third parties' plugins: `import { definePlugin } from 'berth/plugin'`. What is exported here is stable; everything else of core may change.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'

export { Type } from 'typebox'
export type { Static } from 'typebox'
// With a star, so that a plugin can add its own keys: declare module 'berth/plugin' { interface Cradle { … } }
export * from '../plugins/manifest.ts'
export type * from '../contracts/services.ts'
export { BerthError, defineError } from '../errors/define.ts'
export type { DeclaredError, ErrorDetail, ErrorFactory } from '../errors/define.ts'
export type { ErrorKind } from '../errors/kinds.ts'
export { Ambiguous, InvalidRequest, InvalidState, NameConflict, NotFound, PluginDisabled } from '../errors/common.ts'
export { Duration, LongDuration, Size } from '../config/schema.ts'
export { durationMs, sizeBytes } from '../config/quantities.ts'
export { nullable, oneOf, ResourceName, Tags, Timestamp } from '../http/schemas.ts'
export type { Journal } from '../db/changes.ts'
export { inTransaction, isDuplicate } from '../db/transaction.ts'

/** Routes whose requests have the types of their schemas: the `routes` that `create` returns. */
export type Routes = FastifyPluginAsyncTypebox
