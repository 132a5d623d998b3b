// Requests as no good guest sends them, over HTTP/1.1 and HTTP/2.
import { frameGrid } from './frame-grid.ts'
import { block, CONTINUATION, DATA, END_HEADERS, END_STREAM, frame, GOAWAY, HEADERS, headers, PING, PRIORITY, PUSH_PROMISE, RST_STREAM, SETTINGS, WINDOW_UPDATE, word } from './frames.ts'
import { ODD_NAMES, ODD_VALUES, OF_THE_CONNECTION, RESET_CODES, SINGLE } from './hostile-answers.ts'

/** What a guest sends on a connection of its own, in pieces; between two of them a turn of the event loop passes. */
export interface HostileRequest {
  readonly name: string
  readonly pieces: readonly Buffer[]
}

type Lines = readonly (readonly [string, string])[]

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'TRACE', 'CONNECT', 'PRI', 'QUERY', 'get', 'PROPFIND', 'M-SEARCH', '', 'G ET', 'X'.repeat(1_000)]
const TARGETS = ['/', '*', '', '//', '/%00', '/\x01', '/\xff', '/a b', 'http://x/', 'https://x/', 'x:443', '/../..', `/${'a'.repeat(20_000)}`, `/${'%2e'.repeat(5_000)}`, '?', '#', '/#x', '\\']

/** Over HTTP/1.1; `host` is what a good `Host` says. */
export function requestsOfHttp1 (host: string): HostileRequest[] {
  const one = (name: string, text: string, ...more: readonly string[]): HostileRequest => ({ name, pieces: [text, ...more].map(piece => Buffer.from(piece, 'latin1')) })
  const get = (lines: string): string => `GET / HTTP/1.1\r\nHost: ${host}\r\n${lines}\r\n`
  const post = (lines: string, body: string): string => `POST / HTTP/1.1\r\nHost: ${host}\r\n${lines}\r\n${body}`
  const chunked = (trailers: string): string => post('Transfer-Encoding: chunked\r\n', `2\r\nok\r\n0\r\n${trailers}\r\n`)
  const twice = [...SINGLE, ...OF_THE_CONNECTION].flatMap(name => [['a', 'a'], ['a', 'b'], ['0', '00'], ['chunked', 'gzip']].map(([first, second]) => ({ name, first, second })))
  return [
    ...METHODS.flatMap(method => TARGETS.map(target => one(`${method.slice(0, 10)} ${target.slice(0, 10)}`, `${method} ${target} HTTP/1.1\r\nHost: ${host}\r\n\r\n`))),
    ...['HTTP/0.9', 'HTTP/1.0', 'HTTP/1.2', 'HTTP/2.0', 'HTTP/3', 'RTSP/1.0', ''].map(version => one(`version ${version}`, `GET / ${version}\r\nHost: ${host}\r\n\r\n`)),
    ...twice.flatMap(({ name, first, second }) => [
      one(`${name}: ${first}, ${second}`, get(`${name}: ${first}\r\n${name}: ${second}\r\n`)), one(`POST ${name}: ${first}, ${second}`, post(`${name}: ${first}\r\n${name}: ${second}\r\nContent-Length: 2\r\n`, 'ok')),
      one(`${name}: ${first}, ${second} in trailers`, chunked(`${name}: ${first}\r\n${name}: ${second}\r\n`))
    ]),
    ...ODD_NAMES.flatMap(name => [one(`name ${JSON.stringify(name.slice(0, 20))}`, get(`${name}: x\r\n`)), one(`trailer ${JSON.stringify(name.slice(0, 20))}`, chunked(`${name}: x\r\n`))]),
    ...ODD_VALUES.flatMap((value, index) => [one(`value ${index}`, get(`X: ${value}\r\n`)), one(`trailer value ${index}`, chunked(`X: ${value}\r\n`)),
      ...['Connection', 'Upgrade', 'Expect', 'Content-Length', 'Transfer-Encoding', 'Host', 'Max-Forwards', 'Authorization', 'Cookie', 'TE'].map(name => one(`${name} ${index}`, get(`${name}: ${value}\r\n`)))]),
    ...['0', '00', '000', ' 0 ', '+0', '-0', '0x0', '0.0', '1', 'x', '', '0, 5', '99999999999999999999'].flatMap(value => ['OPTIONS', 'TRACE', 'GET'].map(method => one(`${method} Max-Forwards ${value}`, `${method} / HTTP/1.1\r\nHost: ${host}\r\nMax-Forwards: ${value}\r\n\r\n`))),
    ...['websocket', 'h2c', 'WebSocket', 'websocket, h2c', 'TLS/1.0', ''].flatMap(offer => ['GET', 'POST', 'OPTIONS'].flatMap(method => ['Upgrade', 'upgrade, close', 'keep-alive, Upgrade, HTTP2-Settings'].map(connection => one(`${method} Upgrade ${offer}, ${connection}`, `${method} / HTTP/1.1\r\nHost: ${host}\r\nConnection: ${connection}\r\nUpgrade: ${offer}\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n`, 'more')))),
    ...['100-continue', '100-Continue', '100-continue, x', 'x', ''].map(value => one(`Expect: ${value}`, post(`Expect: ${value}\r\nContent-Length: 2\r\n`, ''), 'ok')),
    ...['5', '+5', '5,5', '-1', '0x5', '', '99999999999999999999', '5 5', '1e1', 'NaN'].flatMap(value => [one(`length ${value}`, post(`Content-Length: ${value}\r\n`, 'okoko')), one(`length ${value} and chunks`, post(`Content-Length: ${value}\r\nTransfer-Encoding: chunked\r\n`, '0\r\n\r\n'))]),
    ...['chunked', 'gzip', 'gzip, chunked', 'chunked, gzip', 'chunked, chunked', 'xchunked', 'identity', '', ' chunked', 'chunked;x=y', '"chunked"', 'chunked,'].map(value => one(`Transfer-Encoding: ${value}`, post(`Transfer-Encoding: ${value}\r\n`, '0\r\n\r\n'))),
    ...['-1', '0x1', '1 ', '1;a=b', '1;\x01', 'ffffffffffffffffff', '', 'g', '+1', '1\n'].map(size => one(`chunk size ${size}`, post('Transfer-Encoding: chunked\r\n', `${size}\r\nx\r\n0\r\n\r\n`))),
    one('half a header', `GET / HTTP/1.1\r\nHost: ${host}`), one('half a body', post('Content-Length: 9\r\n', 'ok')), one('half a chunk', post('Transfer-Encoding: chunked\r\n', '9\r\nok')), one('two requests', get('') + get('')), one('a hundred requests', get('').repeat(100)),
    one('a request behind a refused one', `TRACE / HTTP/1.1\r\nHost: ${host}\r\n\r\n${get('')}`), one('line feeds', get('').replaceAll('\r\n', '\n')), one('empty lines in front', `\r\n\r\n${get('')}`), one('a folded line', get('X: a\r\n b\r\n')), one('blank before the colon', get('X : a\r\n')), one('noise', '\x16\x03\x01\x02\x00'.repeat(200)),
    one('2,000 lines', get('X: y\r\n'.repeat(2_000))), one('101 lines', get('X: y\r\n'.repeat(101))), one('a body of 20,000 chunks', post('Transfer-Encoding: chunked\r\n', `${'1\r\nx\r\n'.repeat(20_000)}0\r\n\r\n`)), one('no host', 'GET / HTTP/1.1\r\n\r\n'), one('two hosts', get(`Host: ${host}\r\n`)), one('another host', 'GET / HTTP/1.1\r\nHost: other.test\r\n\r\n'),
    ...combinationsOfHttp1(host),
    { name: 'the preface of HTTP/2', pieces: [Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')] }
  ]
}

/** Each field that may stand once, where the request has no body, ends early, or is of HTTP/1.0, and in the head and the trailers of one request. */
function combinationsOfHttp1 (host: string): HostileRequest[] {
  const one = (name: string, text: string): HostileRequest => ({ name, pieces: [Buffer.from(text, 'latin1')] })
  return [...SINGLE, ...OF_THE_CONNECTION].flatMap(name => [['a', 'a'], ['1', '2']].flatMap(([first, second]) => {
    const lines = `${name}: ${first}\r\n${name.toUpperCase()}: ${second}\r\n`
    return [
      ...['HEAD', 'DELETE', 'OPTIONS', 'PUT'].map(method => one(`${method} ${name}: ${first}, ${second}`, `${method} / HTTP/1.1\r\nHost: ${host}\r\n${lines}\r\n`)),
      one(`${name}: ${first}, ${second} of HTTP/1.0`, `GET / HTTP/1.0\r\nHost: ${host}\r\n${lines}\r\n`),
      one(`${name}: ${first}, ${second} in the head and in trailers`, `POST / HTTP/1.1\r\nHost: ${host}\r\n${name}: ${first}\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n${name}: ${second}\r\n\r\n`),
      one(`${name}: ${first}, ${second} with an offer to upgrade`, `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n${lines}\r\n`),
      one(`${name}: ${first}, ${second} in trailers that are cut`, `POST / HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n${lines}`)
    ]
  }))
}

/** Each frame of the grid at each moment of a request, within a header and around trailers, too; and each field in the head and the trailers of one request. */
function combinationsOfHttp2 (pseudo: Lines): HostileRequest[] {
  const data = frame(DATA, 0, 1, Buffer.from('ok'))
  const head = headers(1, 0, pseudo)
  const trailers: Lines = [['x', 'y']]
  const moments: [string, Buffer[], Buffer[]][] = [
    ['at once', [], [headers(1, END_STREAM, pseudo)]],
    ['within the header', [frame(HEADERS, 0, 1, block(pseudo))], [frame(CONTINUATION, END_HEADERS, 1), frame(DATA, END_STREAM, 1)]],
    ['behind the header', [head], [frame(DATA, END_STREAM, 1)]],
    ['before trailers', [head, data], [headers(1, END_STREAM, trailers)]],
    ['within trailers', [head, data, frame(HEADERS, END_STREAM, 1, block(trailers))], [frame(CONTINUATION, END_HEADERS, 1)]],
    ['behind trailers', [head, data, headers(1, END_STREAM, trailers)], []]
  ]
  return [
    ...frameGrid().flatMap(({ name, bytes }) => moments.map(([moment, before, behind]): HostileRequest => ({ name: `${name}, ${moment}`, pieces: [Buffer.concat([...before, bytes(1), ...behind])] }))),
    ...[...SINGLE, ...OF_THE_CONNECTION].flatMap(name => [['a', 'a'], ['1', '2']].map(([first = '', second = '']): HostileRequest => ({
      name: `${name}: ${first}, ${second} in the head and in trailers`, pieces: [Buffer.concat([headers(1, 0, [...pseudo, [name, first]]), data, headers(1, END_STREAM, [[name, second]])])]
    })))
  ]
}

/** Over HTTP/2, behind the preface and empty settings. */
export function requestsOfHttp2 (host: string): HostileRequest[] {
  const pseudo = (method: string, path = '/', authority = host, scheme = 'https'): Lines => [[':method', method], [':path', path], [':scheme', scheme], [':authority', authority]]
  const one = (name: string, ...pieces: readonly Buffer[]): HostileRequest => ({ name, pieces })
  const get = (name: string, lines: Lines): HostileRequest => one(name, headers(1, END_STREAM, lines))
  const body = frame(DATA, 0, 1, Buffer.from('ok'))
  const both = (name: string, lines: Lines): HostileRequest[] => [
    get(name, [...pseudo('GET'), ...lines]), one(`POST ${name}`, headers(1, 0, [...pseudo('POST'), ...lines]), frame(DATA, END_STREAM, 1, Buffer.from('ok'))),
    one(`${name} in trailers`, headers(1, 0, pseudo('POST')), body, headers(1, END_STREAM, lines)), one(`${name} in trailers at once`, Buffer.concat([headers(1, 0, pseudo('POST')), headers(1, END_STREAM, lines)]))
  ]
  const twice = [...SINGLE, ...OF_THE_CONNECTION, ':path', ':method', ':authority', ':status', ':protocol'].flatMap(name => [['a', 'a'], ['a', 'b'], ['2', '2'], ['2', '3']].map(([first = '', second = '']) => ({ name, first, second })))
  const begun = headers(1, 0, pseudo('POST'))
  const odd: [string, Buffer][] = [
    ...RESET_CODES.flatMap((code): [string, Buffer][] => [[`RST_STREAM ${code}`, frame(RST_STREAM, 0, 1, word(code))], [`GOAWAY ${code}`, frame(GOAWAY, 0, 0, Buffer.concat([word(0), word(code)]))]]),
    ['PUSH_PROMISE', frame(PUSH_PROMISE, END_HEADERS, 1, Buffer.concat([word(2), block(pseudo('GET'))]))], ['window 0', frame(WINDOW_UPDATE, 0, 1, word(0))], ['window too large', Buffer.concat([frame(WINDOW_UPDATE, 0, 1, word(0x7fffffff)), frame(WINDOW_UPDATE, 0, 1, word(0x7fffffff))])],
    ['settings: window 0', frame(SETTINGS, 0, 0, Buffer.concat([Buffer.from([0, 4]), word(0)]))], ['settings: window too large', frame(SETTINGS, 0, 0, Buffer.concat([Buffer.from([0, 4]), word(0xffffffff)]))], ['settings: table 0', frame(SETTINGS, 0, 0, Buffer.concat([Buffer.from([0, 1]), word(0)]))], ['settings: header list 1', frame(SETTINGS, 0, 0, Buffer.concat([Buffer.from([0, 6]), word(1)]))],
    ['2,000 settings', Buffer.concat(Array.from({ length: 2_000 }, () => frame(SETTINGS, 0, 0)))], ['10,000 pings', Buffer.concat(Array.from({ length: 10_000 }, () => frame(PING, 0, 0, Buffer.alloc(8))))], ['data behind the end', Buffer.concat([frame(DATA, END_STREAM, 1), body])], ['header without its end', frame(HEADERS, 0, 3, block(pseudo('GET')))],
    ['a continuation alone', frame(CONTINUATION, END_HEADERS, 1)], ['10,000 continuations', Buffer.concat([frame(HEADERS, 0, 3, block(pseudo('GET'))), ...Array.from({ length: 10_000 }, () => frame(CONTINUATION, 0, 3))])], ['priority of itself', frame(PRIORITY, 0, 1, Buffer.concat([word(1), Buffer.from([0])]))], ['an unknown frame', frame(0xbe, 0xff, 1, Buffer.alloc(50))], ['broken HPACK', frame(HEADERS, END_HEADERS, 3, Buffer.alloc(50, 0xff))],
    ['an even stream', headers(2, END_STREAM, pseudo('GET'))], ['an older stream', headers(1, END_STREAM, pseudo('GET'))], ['data of no stream', frame(DATA, 0, 99, Buffer.from('x'))], ['20,000 empty data frames', Buffer.concat(Array.from({ length: 20_000 }, () => frame(DATA, 0, 1)))], ['20,000 data frames of a byte', Buffer.concat(Array.from({ length: 20_000 }, () => frame(DATA, 0, 1, Buffer.from('x'))))], ['more than the window', Buffer.concat(Array.from({ length: 100 }, () => frame(DATA, 0, 1, Buffer.alloc(16_384))))]
  ]
  return [
    ...METHODS.flatMap(method => TARGETS.map(target => get(`${method.slice(0, 10)} ${target.slice(0, 10)}`, pseudo(method, target)))),
    ...['http', 'ftp', '', 'HTTPS'].map(scheme => get(`scheme ${scheme}`, pseudo('GET', '/', host, scheme))), ...['', 'other.test', `${host},x`, `x@${host}`, '\x00'].map(authority => get(`authority ${authority}`, pseudo('GET', '/', authority))),
    ...[0, 1, 2, 3].map(missing => get(`without pseudo-header ${missing}`, pseudo('GET').filter((_, index) => index !== missing))), get('pseudo-header behind a field', [['x', 'y'], ...pseudo('GET')]), get('extended CONNECT', [...pseudo('CONNECT'), [':protocol', 'websocket']]), get('CONNECT', [[':method', 'CONNECT'], [':authority', host]]), get('an answer', [[':status', '200']]),
    ...['00', '0', ' 0', 'x', '', '1'].flatMap(value => [get(`Max-Forwards ${value}`, [...pseudo('OPTIONS'), ['max-forwards', value]]), get(`Max-Forwards 5, ${value}`, [...pseudo('OPTIONS'), ['max-forwards', '5'], ['max-forwards', value]])]), get('host of its own', [...pseudo('GET'), ['host', 'other.test']]), get('host twice', [...pseudo('GET').slice(0, 3), ['host', host], ['host', host]]),
    ...twice.flatMap(({ name, first, second }) => both(`${name}: ${first}, ${second}`, [[name, first], [name, second]])), ...[...OF_THE_CONNECTION, ...SINGLE].flatMap(name => both(`${name}: x`, [[name, 'x']])), ...['trailers', 'gzip', 'trailers, gzip'].flatMap(value => both(`te: ${value}`, [['te', value]])),
    ...ODD_NAMES.flatMap(name => both(`name ${JSON.stringify(name.slice(0, 20))}`, [[name, 'x']])), ...ODD_VALUES.flatMap((value, index) => both(`value ${index}`, [['x', value]])), ...ODD_VALUES.map((value, index) => get(`path ${index}`, pseudo('GET', `/${value}`))),
    ...[0, 1, 2, 3, 99, 2 ** 53].flatMap(length => [one(`length ${length}`, headers(1, 0, [...pseudo('POST'), ['content-length', String(length)]]), frame(DATA, END_STREAM, 1, Buffer.from('ok'))), get(`length ${length} without a body`, [...pseudo('POST'), ['content-length', String(length)]])]),
    ...odd.flatMap(([name, bytes]) => [one(`${name} at once`, bytes), one(`${name} behind the header`, Buffer.concat([begun, bytes])), one(`${name} a turn later`, begun, bytes), one(`${name} in the body`, begun, body, bytes), one(`${name} behind the end`, headers(1, END_STREAM, pseudo('GET')), bytes), one(`${name} behind the end of a body`, Buffer.concat([begun, frame(DATA, END_STREAM, 1, Buffer.from('ok'))]), bytes)]),
    ...combinationsOfHttp2(pseudo('POST')),
    one('300 streams at once', Buffer.concat(Array.from({ length: 300 }, (_, index) => headers(1 + index * 2, END_STREAM, pseudo('GET'))))), one('300 streams, all reset', Buffer.concat(Array.from({ length: 300 }, (_, index) => Buffer.concat([headers(1 + index * 2, 0, pseudo('POST')), frame(RST_STREAM, 0, 1 + index * 2, word(0))]))))
  ]
}
