// Adds to the document what the routes' schemas do not say: how nested query values are written, the headers that all routes share, streams, uploads and WebSockets.
import { STATUS_CODES } from 'node:http'
import { CONDITIONAL_METHODS } from '../if-match.ts'
import { PreconditionFailed } from '../errors.ts'
import type { CodesByStatus } from '../route-errors.ts'
import { exampleOf } from './examples.ts'

interface Schema { readonly type?: unknown, readonly [keyword: string]: unknown }
interface Parameter { in: string, name: string, schema?: Schema, style?: string, explode?: boolean, description?: string, required?: boolean }
interface Response { description: string, headers?: Record<string, unknown>, content?: Record<string, unknown> }
interface Operation {
  parameters?: Parameter[]
  requestBody?: object
  responses?: Record<string, Response>
  'x-route'?: RouteNotes
}

/** The part of a route's configuration that the document uses; see `documentedRoute`. */
export interface RouteNotes {
  readonly idempotent: boolean
  readonly websocket: boolean
  readonly optionalBody: boolean
  readonly errorCodes: CodesByStatus
  /** media type of an answer that is a stream */
  readonly produces?: string
  /** media types of a body that is a stream */
  readonly accepts?: readonly string[]
}

export interface Finishable { paths?: Record<string, Record<string, unknown>>, components?: { schemas?: Record<string, unknown> } }

/** Changes a document in place; nobody else may hold it. */
export function finish (document: Finishable): Finishable {
  dropOwnKeywords(document)
  for (const operations of Object.values(document.paths ?? {})) {
    for (const [method, operation] of Object.entries(operations)) {
      if (!isOperation(operation)) continue
      finishOperation(operation, { isRead: method === 'get', isConditional: 'get' in operations && CONDITIONAL_METHODS.has(method.toUpperCase()) })
      addExamples(operation, document.components?.schemas ?? {})
    }
  }
  return document
}

/** Removes the keywords that only this server's validator knows. Fields of that name stay. */
function dropOwnKeywords (node: unknown, areNames = false): void {
  if (typeof node !== 'object' || node === null) return
  for (const [key, value] of Object.entries(node)) {
    if (!areNames && OWN_KEYWORDS.has(key)) Reflect.deleteProperty(node, key)
    else dropOwnKeywords(value, !areNames && key === 'properties')
  }
}

function isOperation (value: unknown): value is Operation {
  return typeof value === 'object' && value !== null && 'responses' in value
}

interface Place {
  readonly isRead: boolean
  /** whether it changes what a GET of the same path reads */
  readonly isConditional: boolean
}

function finishOperation (operation: Operation, place: Place): void {
  const notes = operation['x-route']
  delete operation['x-route']
  const parameters = operation.parameters ?? []
  for (const parameter of parameters) {
    // `tags[team]=backend`
    if (parameter.in === 'query' && parameter.schema?.type === 'object') Object.assign(parameter, { style: 'deepObject', explode: true })
  }
  if (notes?.idempotent === true) parameters.push(IDEMPOTENCY_KEY)
  if (place.isConditional) parameters.push(IF_MATCH)
  if (isVersionedRead(operation, notes, place)) parameters.push(IF_NONE_MATCH)
  if (parameters.length > 0) operation.parameters = parameters
  if (notes?.accepts !== undefined) operation.requestBody = { required: true, content: Object.fromEntries(notes.accepts.map((type) => [type, { schema: BINARY }])) }
  if (notes?.optionalBody === true && operation.requestBody !== undefined) operation.requestBody = { ...operation.requestBody, required: false }
  operation.responses = responsesOf(operation, notes, place)
}

/** Adds examples to each JSON body of requests and of successful answers. */
function addExamples ({ requestBody, responses = {} }: Operation, definitions: Readonly<Record<string, unknown>>): void {
  const successes = Object.entries(responses).filter(([status]) => status.startsWith('2')).map(([, response]) => response)
  for (const holder of [requestBody, ...successes]) {
    for (const [type, media] of Object.entries(contentOf(holder))) {
      if (type === 'application/json' || type === 'multipart/form-data') media['example'] = exampleOf(media['schema'], definitions)
    }
  }
}

function contentOf (holder: unknown): Record<string, Record<string, unknown>> {
  return typeof holder === 'object' && holder !== null && 'content' in holder ? holder.content as Record<string, Record<string, unknown>> : {}
}

/** core/http/validation.ts */
const OWN_KEYWORDS = new Set(['rule', 'secret'])
const BINARY = { type: 'string', format: 'binary' }
const IDEMPOTENCY_KEY: Parameter = {
  in: 'header',
  name: 'Idempotency-Key',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
  description: 'A request that is sent again with the same key within 24 hours gets the first one\'s answer, with the header `Idempotent-Replayed: true`'
}
const IF_MATCH: Parameter = {
  in: 'header',
  name: 'If-Match',
  schema: { type: 'string' },
  description: 'The `ETag` of a GET of this path, or several: the change is made only if one of them is still the one of what is there, or with `*` if anything is. Else the answer is 412. It needs a key that may read it, too'
}
const IF_NONE_MATCH: Parameter = {
  in: 'header',
  name: 'If-None-Match',
  schema: { type: 'string' },
  description: 'The `ETag` of an earlier answer, or several: as long as one of them is still the one of what is there, the answer is 304 without a body'
}
const NOT_MODIFIED: Response = { description: 'Not Modified: it is still what `If-None-Match` names' }
const ETAG = { schema: { type: 'string' }, description: 'Names this version of what was read: for `If-None-Match` of a GET, and `If-Match` of a change' }
const REQUEST_ID = { schema: { type: 'string' }, description: 'Names the request in the server\'s log; the caller\'s own when it sent a sane one' }
const LINK = { schema: { type: 'string' }, description: 'With `rel="next"` the address of the next page, when there is one' }
const RETRY_AFTER = { schema: { type: 'integer' }, description: 'Seconds after which the same request may well succeed. Some that wait for an operator come without it' }
const IDEMPOTENT_REPLAYED = { schema: { type: 'string', enum: ['true'] }, description: 'Only of an answer that an earlier request with the same `Idempotency-Key` got' }
const ERROR = { $ref: '#/components/schemas/Error' }

/** Whether its answer has a version, which a client that has it already names to be sent nothing. */
function isVersionedRead ({ responses = {} }: Operation, notes: RouteNotes | undefined, { isRead }: Place): boolean {
  return isRead && '200' in responses && notes?.produces === undefined && notes?.websocket !== true
}

function responsesOf (operation: Operation, notes: RouteNotes | undefined, place: Place): Record<string, Response> {
  const { parameters = [], responses = {} } = operation
  const isVersioned = isVersionedRead(operation, notes, place)
  const isList = parameters.some(({ in: place, name }) => place === 'query' && name === 'after') && parameters.some(({ name }) => name === 'limit')
  const isStream = notes?.websocket === true || notes?.produces !== undefined
  const codes = { ...notes?.errorCodes, ...place.isConditional ? { 412: [PreconditionFailed.code] } : {} }
  const all: Record<string, Response> = { ...isStream ? streamResponse(notes) : responses, ...isVersioned ? { 304: NOT_MODIFIED } : {}, ...refusals(codes) }
  return Object.fromEntries(Object.entries(all).map(([status, response]) => [status, {
    ...response,
    description: response.description === 'Default Response' ? STATUS_CODES[status] ?? 'Error' : response.description,
    headers: {
      ...response.headers,
      'X-Request-Id': REQUEST_ID,
      ...isList && status === '200' ? { Link: LINK } : {},
      ...status === '429' || status === '503' || (status === '409' && notes?.idempotent === true) ? { 'Retry-After': RETRY_AFTER } : {},
      ...notes?.idempotent === true && status.startsWith('2') ? { 'Idempotent-Replayed': IDEMPOTENT_REPLAYED } : {},
      ...status === '412' || (isVersioned && (status === '200' || status === '304')) ? { ETag: ETAG } : {}
    }
  }]))
}

/** Documents each error by its code: in words for people, and as an example of that name for programs. */
function refusals (codes: CodesByStatus): Record<string, Response> {
  return Object.fromEntries(Object.entries(codes).map(([status, names]) => [status, {
    description: `${STATUS_CODES[status] ?? 'Error'}: ${names.map((name) => `\`${name}\``).join(', ')}`,
    content: { 'application/json': { schema: ERROR, examples: Object.fromEntries(names.map((name) => [name, { value: { code: name, message: name.replaceAll('_', ' ') } }])) } }
  }]))
}

function streamResponse ({ websocket, produces }: RouteNotes): Record<string, Response> {
  if (websocket) return { 101: { description: 'The connection is a WebSocket from here on' } }
  return { 200: { description: 'A stream', content: { [produces ?? 'application/octet-stream']: { schema: { type: 'string' } } } } }
}
