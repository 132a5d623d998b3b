// A small collector: takes traces by OTLP over HTTP (protobuf), decodes them by the published message types, and keeps them for a test to look at.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import protobuf from 'protobufjs'
import type { Test } from 'tap'
import { isRecord } from '../../core/json/is-record.ts'

/** opentelemetry/proto/{collector/trace,trace,resource,common}/v1, what of them traces use, with its numbers */
const MESSAGES = `
  syntax = "proto3";
  message ExportTraceServiceRequest { repeated ResourceSpans resource_spans = 1; }
  message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; string schema_url = 3; }
  message Resource { repeated KeyValue attributes = 1; uint32 dropped_attributes_count = 2; }
  message ScopeSpans { InstrumentationScope scope = 1; repeated Span spans = 2; string schema_url = 3; }
  message InstrumentationScope { string name = 1; string version = 2; repeated KeyValue attributes = 3; uint32 dropped_attributes_count = 4; }
  message Span {
    bytes trace_id = 1; bytes span_id = 2; string trace_state = 3; bytes parent_span_id = 4; fixed32 flags = 16; string name = 5;
    enum SpanKind { UNSPECIFIED = 0; INTERNAL = 1; SERVER = 2; CLIENT = 3; PRODUCER = 4; CONSUMER = 5; }
    SpanKind kind = 6; fixed64 start_time_unix_nano = 7; fixed64 end_time_unix_nano = 8; repeated KeyValue attributes = 9; uint32 dropped_attributes_count = 10;
    Status status = 15;
  }
  message Status { enum StatusCode { UNSET = 0; OK = 1; ERROR = 2; } string message = 2; StatusCode code = 3; }
  message KeyValue { string key = 1; AnyValue value = 2; }
  message AnyValue { oneof value { string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4; } }
`
const REQUEST = protobuf.parse(MESSAGES).root.lookupType('ExportTraceServiceRequest')

export interface ReceivedSpan {
  readonly trace: string
  readonly id: string
  /** empty: it has none */
  readonly parent: string
  readonly name: string
  readonly kind: string
  readonly failed: boolean
  /** ms since the epoch */
  readonly startMs: number
  readonly endMs: number
  readonly attributes: Readonly<Record<string, unknown>>
  /** of the whole program */
  readonly resource: Readonly<Record<string, unknown>>
}

export interface Collector {
  readonly endpoint: string
  readonly port: number
  /** in the order of their start */
  spans (): readonly ReceivedSpan[]
  /** header values of the requests that came, in their order */
  readonly headers: readonly IncomingMessage['headers'][]
  close (): Promise<void>
}

/** @param answer what becomes of a request that was taken; absent: 200, as a collector answers */
export async function startCollector (t: Test, { answer = accept, port = 0 }: { readonly answer?: (response: ServerResponse) => void, readonly port?: number } = {}): Promise<Collector> {
  const spans: ReceivedSpan[] = []
  const headers: IncomingMessage['headers'][] = []
  const server = createServer((request, response) => {
    headers.push(request.headers)
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => { parts.push(part) })
    request.on('end', () => {
      spans.push(...decode(Buffer.concat(parts)))
      answer(response)
    })
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const close = async (): Promise<void> => {
    if (!server.listening) return
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
  }
  t.teardown(close)
  const bound = (server.address() as AddressInfo).port
  return { endpoint: `http://127.0.0.1:${bound}/v1/traces`, port: bound, spans: () => spans.toSorted((a, b) => a.startMs - b.startMs), headers, close }
}

function accept (response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end()
}

function decode (body: Buffer): ReceivedSpan[] {
  const request: unknown = REQUEST.toObject(REQUEST.decode(body), { longs: String, enums: String, bytes: Buffer, defaults: true, arrays: true })
  return list(request, 'resourceSpans').flatMap(of => list(of, 'scopeSpans').flatMap(scope => list(scope, 'spans').map(span => ({
    trace: hex(span['traceId']),
    id: hex(span['spanId']),
    parent: hex(span['parentSpanId']),
    name: String(span['name']),
    kind: String(span['kind']),
    failed: isRecord(span['status']) && span['status']['code'] === 'ERROR',
    startMs: Number(BigInt(String(span['startTimeUnixNano'])) / 1000n) / 1000,
    endMs: Number(BigInt(String(span['endTimeUnixNano'])) / 1000n) / 1000,
    attributes: attributes(span),
    resource: attributes(of['resource'])
  }))))
}

function list (value: unknown, key: string): Record<string, unknown>[] {
  const items = isRecord(value) ? value[key] : undefined
  return Array.isArray(items) ? items.filter(isRecord) : []
}

function attributes (of: unknown): Record<string, unknown> {
  return Object.fromEntries(list(of, 'attributes').map(({ key, value }) => [String(key), isRecord(value) ? Object.values(value).find(each => each !== null) : undefined]))
}

function hex (value: unknown): string {
  return Buffer.isBuffer(value) ? value.toString('hex') : ''
}

/** A trace as text: each span below its parent, with its duration. */
export function drawTrace (spans: readonly ReceivedSpan[], trace: string): string {
  const mine = spans.filter(span => span.trace === trace)
  const ids = new Set(mine.map(({ id }) => id))
  const lines = (parent: string | undefined, depth: number): string[] => mine
    .filter(span => parent === undefined ? !ids.has(span.parent) : span.parent === parent)
    .flatMap(span => [`${'  '.repeat(depth)}${span.name} ${(span.endMs - span.startMs).toFixed(1)} ms${span.failed ? ' failed' : ''}`, ...lines(span.id, depth + 1)])
  return lines(undefined, 0).join('\n')
}
