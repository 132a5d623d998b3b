// The API's document, from which forms are made.
import { call } from '../api/call.ts'

export interface Schema {
  readonly type?: string | readonly string[]
  readonly description?: string
  readonly enum?: readonly unknown[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly additionalProperties?: Schema | boolean
  readonly anyOf?: readonly Schema[]
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly examples?: readonly unknown[]
  readonly default?: unknown
  readonly $ref?: string
}

interface Operation { readonly description?: string, readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> } }
interface ApiDocument { readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>, readonly components: { readonly schemas: Readonly<Record<string, Schema>> } }

let asked: Promise<ApiDocument> | undefined

/** The body's schema of an operation, for JSON or a form; `undefined` when the server does not have the operation. */
export async function bodySchema (method: string, path: string): Promise<Schema | undefined> {
  asked ??= call<ApiDocument>('GET', '/openapi.json')
  const document = await asked.catch((error: unknown) => { asked = undefined; throw error })
  const content = document.paths[path]?.[method.toLowerCase()]?.requestBody?.content
  const schema = content?.['application/json']?.schema
  return schema === undefined ? undefined : resolve(document, schema, 0)
}

const DEEPEST = 8

function resolve (document: ApiDocument, schema: Schema, depth: number): Schema {
  if (depth > DEEPEST) return {}
  if (schema.$ref !== undefined) return resolve(document, document.components.schemas[schema.$ref.split('/').at(-1) ?? ''] ?? {}, depth + 1)
  return {
    ...schema,
    ...schema.properties === undefined ? {} : { properties: Object.fromEntries(Object.entries(schema.properties).map(([name, member]) => [name, resolve(document, member, depth + 1)])) },
    ...schema.items === undefined ? {} : { items: resolve(document, schema.items, depth + 1) }
  }
}
