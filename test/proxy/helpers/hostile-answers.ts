// Answers as no good origin gives them: each field that may stand once, each status, each framing, each frame. Tables, so that what is missing can be seen.
import { constants } from 'node:http2'
import type { Socket } from 'node:net'
import type { Play } from './arena.ts'
import { frameGrid } from './frame-grid.ts'
import { block, CONTINUATION, DATA, END_HEADERS, END_STREAM, frame, GOAWAY, HEADERS, headers, PING, PRIORITY, PUSH_PROMISE, RST_STREAM, SETTINGS, WINDOW_UPDATE, word } from './frames.ts'

export interface HostileAnswer {
  readonly name: string
  readonly play: Play
  readonly method?: 'GET' | 'HEAD' | 'POST'
}

type Lines = readonly (readonly [string, string])[]

/** Node's list of single-value fields of HTTP/2, and fields that other readers take for such. */
export const SINGLE = ['access-control-allow-credentials', 'access-control-max-age', 'access-control-request-method', 'age', 'authorization', 'content-encoding', 'content-language',
  'content-length', 'content-location', 'content-md5', 'content-range', 'content-type', 'date', 'dnt', 'etag', 'expires', 'from', 'host', 'if-match', 'if-modified-since', 'if-none-match',
  'if-range', 'if-unmodified-since', 'last-modified', 'location', 'max-forwards', 'proxy-authorization', 'range', 'referer', 'retry-after', 'tk', 'upgrade-insecure-requests', 'user-agent',
  'x-content-type-options', 'content-disposition', 'server', 'strict-transport-security', 'access-control-allow-origin', 'www-authenticate', 'set-cookie', 'accept-ranges', 'allow', 'vary',
  'cache-control', 'cookie', 'x-frame-options', 'grpc-status', 'grpc-message', 'alt-svc', 'sec-websocket-accept']
/** Fields that belong to a connection, or to what frames a message. */
export const OF_THE_CONNECTION = ['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade', 'http2-settings', 'te', 'trailer', 'proxy-authenticate', 'content-length', 'expect']
export const STATUSES = ['000', '001', '099', ...Array.from({ length: 900 }, (_, index) => String(100 + index)), '1000', '20', '2', '', '-200', '+200', '0200', '2e2', ' 200', '20x', '200.5', '0x1']
const ODD_NAMES = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'x'.repeat(30_000), 'x y', 'x\t', 'x(', 'x\x00', 'x\x7f', 'x\xff', '', ' x', 'X_Y', '!#$%&\'*+.^_`|~', ':status', ':path', ':x', 'x:y', 'X-UPPER']
const ODD_VALUES = ['', ' ', '\t', '\xa0', '\xff'.repeat(100), '\x00', '\x01', '\x7f', 'a\rb', 'a\nb', 'a\r\n b', 'a\r\nb: c', 'x'.repeat(31_000), `${' '.repeat(32_600)}\x01`, `${'\t '.repeat(16_300)}x`, `a${' '.repeat(32_000)}`,
  ','.repeat(32_000), '"'.repeat(32_000), 'a=b;'.repeat(8_000), '\u00e4\u00f6', 'timeout='.repeat(4_000), '0'.repeat(32_000)]
const CODES = [0, 1, 2, 3, 5, 7, 8, 11, 13, 14, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff]

const OK = 'HTTP/1.1 200 OK\r\n'
const BODY = 'Content-Length: 2\r\n\r\nok'
const text = (name: string, bytes: string, more: Partial<HostileAnswer> = {}): HostileAnswer => ({ name, play: write => write(bytes), ...more })
/** Cut: the connection ends behind the bytes. */
const cut = (name: string, bytes: string): HostileAnswer => ({ name, play: (write, _stream, socket) => { write(bytes); socket.end() } })

function fieldsOfHttp1 (): HostileAnswer[] {
  const twice = [...SINGLE, ...OF_THE_CONNECTION].flatMap(name => [['a', 'a'], ['a', 'b'], ['1', '1'], ['1', '2'], ['chunked', 'chunked']].map(([first, second]) => ({ name, first, second })))
  return [
    ...twice.flatMap(({ name, first, second }) => [
      text(`${name}: ${first}, ${second}`, `${OK}${name}: ${first}\r\n${name}: ${second}\r\n${BODY}`),
      text(`${name}: ${first}, ${second} in trailers`, `${OK}Trailer: ${name}\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n${name}: ${first}\r\n${name}: ${second}\r\n\r\n`)
    ]),
    ...[...OF_THE_CONNECTION, ...SINGLE].flatMap(name => ['close', 'x', '0', 'chunked', 'trailers', ''].map(value => text(`${name}: ${value}`, `${OK}${name}: ${value}\r\n${BODY}`))),
    ...SINGLE.map(name => text(`Connection: ${name}`, `${OK}Connection: ${name}\r\n${name}: x\r\n${BODY}`)),
    ...ODD_NAMES.flatMap(name => [text(`name ${JSON.stringify(name.slice(0, 20))}`, `${OK}${name}: x\r\n${BODY}`), text(`trailer ${JSON.stringify(name.slice(0, 20))}`, `${OK}Transfer-Encoding: chunked\r\n\r\n0\r\n${name}: x\r\n\r\n`)]),
    ...ODD_VALUES.flatMap((value, index) => [
      text(`value ${index}`, `${OK}X: ${value}\r\n${BODY}`),
      text(`reason ${index}`, `HTTP/1.1 200 ${value}\r\n${BODY}`),
      text(`trailer value ${index}`, `${OK}Transfer-Encoding: chunked\r\n\r\n0\r\nX: ${value}\r\n\r\n`),
      text(`chunk extension ${index}`, `${OK}Transfer-Encoding: chunked\r\n\r\n2;${value}\r\nok\r\n0\r\n\r\n`),
      text(`chunk size ${index}`, `${OK}Transfer-Encoding: chunked\r\n\r\n2${value}\r\nok\r\n0\r\n\r\n`),
      ...['Connection', 'Keep-Alive', 'Content-Length', 'Transfer-Encoding', 'Trailer', 'Content-Type', 'Date', 'Location', 'Set-Cookie'].map(name => text(`${name} ${index}`, `${OK}${name}: ${value}\r\n${BODY}`))
    ])
  ]
}

function framingOfHttp1 (): HostileAnswer[] {
  const bodies: [string, string, boolean][] = [
    ['no length', '\r\n', false], ['length 0', 'Content-Length: 0\r\n\r\n', false], ['a body', BODY, false], ['too little', 'Content-Length: 9\r\n\r\nok', true], ['too much', 'Content-Length: 1\r\n\r\nok', false],
    ['chunks', 'Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n', false], ['cut chunks', 'Transfer-Encoding: chunked\r\n\r\n9\r\nok', true], ['until the end', '\r\nok', true],
    ['trailers', 'Trailer: X\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: y\r\n\r\n', false], ['trailers announced with a length', `Trailer: X\r\n${BODY}`, false],
    ['trailers announced and no body', 'Trailer: X\r\nContent-Length: 0\r\n\r\n', false], ['trailers announced until the end', 'Trailer: X\r\n\r\nok', true], ['both', 'Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n', false],
    ['gzip', 'Transfer-Encoding: gzip\r\n\r\nok', true], ['gzip, chunked', 'Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n', false], ['cut header', 'Content-Len', true], ['cut trailers', 'Transfer-Encoding: chunked\r\n\r\n0\r\nX: ', true],
    ['another answer', `${BODY}${OK}${BODY}`, false]
  ]
  return (['GET', 'HEAD', 'POST'] as const).flatMap(method => ['100', '101', '102', '103', '199', '200', '204', '205', '206', '301', '304', '400', '401', '407', '417', '421', '500', '599'].flatMap(status => bodies.flatMap(([name, rest, ends]) => ['HTTP/1.1', 'HTTP/1.0'].map(version => ({
    ...(ends ? cut : text)(`${method} ${version} ${status} ${name}`, `${version} ${status} X\r\n${rest}`), method
  })))))
}

function manyOfHttp1 (): HostileAnswer[] {
  const pieces = (bytes: string): Play => (write, _stream, socket) => {
    let at = 0
    const next = (): void => { if (at < bytes.length && socket.writable) { write(bytes.slice(at, ++at)); setImmediate(next) } }
    next()
  }
  return [
    text('10,000 early answers', `${'HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n'.repeat(10_000)}${OK}${BODY}`),
    text('500 early answers', `${'HTTP/1.1 100 Continue\r\n\r\n'.repeat(500)}${OK}${BODY}`),
    text('2,000 lines', `${OK}${'X: y\r\n'.repeat(2_000)}${BODY}`),
    text('5,000 empty lines', `${OK}${':\r\n'.repeat(5_000)}${BODY}`),
    text('2,000 cookies', `${OK}${'Set-Cookie: y\r\n'.repeat(2_000)}${BODY}`),
    text('5,000 names', `${OK}${Array.from({ length: 2_500 }, (_, index) => `X${index}: \r\n`).join('')}${BODY}`),
    text('2,000 Connection lines', `${OK}${'Connection: a\r\n'.repeat(2_000)}${BODY}`),
    text('2,000 trailers', `${OK}Transfer-Encoding: chunked\r\n\r\n0\r\n${'X: y\r\n'.repeat(2_000)}\r\n`),
    text('100,000 chunks of a byte', `${OK}Transfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(100_000)}0\r\n\r\n`),
    text('20,000 chunks with extensions', `${OK}Transfer-Encoding: chunked\r\n\r\n${`1;${'x'.repeat(100)}\r\nx\r\n`.repeat(20_000)}0\r\n\r\n`),
    text('a megabyte of line ends', '\r\n'.repeat(500_000)),
    text('a megabyte of CR', `${OK}X: ${'\r'.repeat(1_000_000)}`),
    text('a megabyte of LF', '\n'.repeat(1_000_000)),
    text('a megabyte of zeros', `${OK}Transfer-Encoding: chunked\r\n\r\n${'0'.repeat(1_000_000)}`),
    text('a megabyte in a name', `${OK}${'x'.repeat(1_000_000)}`),
    text('ten megabytes', `${OK}Content-Length: 10000000\r\n\r\n${'x'.repeat(10_000_000)}`),
    { name: 'byte by byte', play: pieces(`${OK}X: ${'y'.repeat(500)}\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: y\r\n\r\n`) },
    { name: 'reset at once', play: (_write, _stream, socket) => { socket.resetAndDestroy() } },
    { name: 'reset in the body', play: (write, _stream, socket) => { write(`${OK}Content-Length: 9\r\n\r\nok`); setTimeout(() => socket.resetAndDestroy(), 20) } },
    { name: 'answer in two turns', play: write => { write(`${OK}Content-Length: 4\r\n`); setTimeout(() => write('\r\nok'), 20); setTimeout(() => write('ok'), 40) } }
  ]
}

/** Every status with what a body and trailers may be, and each field that may stand once where there is no body, or no answer yet. */
function combinationsOfHttp1 (): HostileAnswer[] {
  const chunked = 'Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: y\r\n\r\n'
  return [
    ...STATUSES.flatMap(status => [
      ...(['HEAD', 'POST'] as const).map(method => text(`${method} status ${status}`, `HTTP/1.1 ${status} X\r\n${BODY}`, { method })),
      text(`status ${status} with trailers`, `HTTP/1.1 ${status} X\r\nTrailer: X\r\n${chunked}`),
      cut(`status ${status} of HTTP/1.0`, `HTTP/1.0 ${status} X\r\n\r\nok`),
      text(`status ${status} before another answer`, `HTTP/1.1 ${status} X\r\n\r\n${OK}${BODY}`)
    ]),
    ...[...SINGLE, ...OF_THE_CONNECTION].flatMap(name => [['a', 'a'], ['1', '2']].flatMap(([first, second]) => {
      const lines = `${name}: ${first}\r\n${name.toUpperCase()}: ${second}\r\n`
      return [
        text(`${name}: ${first}, ${second} in an early answer`, `HTTP/1.1 103 Early Hints\r\n${lines}\r\n${OK}${BODY}`),
        text(`${name}: ${first}, ${second} of 204`, `HTTP/1.1 204 X\r\n${lines}\r\n`),
        text(`${name}: ${first}, ${second} of 304`, `HTTP/1.1 304 X\r\n${lines}\r\n`),
        text(`HEAD ${name}: ${first}, ${second}`, `${OK}${lines}${BODY}`, { method: 'HEAD' }),
        cut(`${name}: ${first}, ${second} of HTTP/1.0`, `HTTP/1.0 200 X\r\n${lines}\r\nok`),
        text(`${name}: ${first}, ${second} in the head and in trailers`, `${OK}${name}: ${first}\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n${name}: ${second}\r\n\r\n`),
        text(`${name}: ${first}, ${second} of 401 to a POST`, `HTTP/1.1 401 X\r\n${lines}${BODY}`, { method: 'POST' })
      ]
    }))
  ]
}

/** What an HTTP/1.1 origin answers. */
export function answersOfHttp1 (): HostileAnswer[] {
  return [
    ...STATUSES.flatMap(status => [text(`status ${status}`, `HTTP/1.1 ${status} X\r\n${BODY}`)]),
    ...['HTTP/0.9', 'HTTP/1.2', 'HTTP/2', 'HTTP/2.0', 'http/1.1', 'ICY', 'HTTP/1.1\t', 'HTTP/11'].map(version => text(`version ${version}`, `${version} 200 OK\r\n${BODY}`)),
    ...fieldsOfHttp1(), ...framingOfHttp1(), ...manyOfHttp1(), ...combinationsOfHttp1()
  ]
}

const STATUS: Lines = [[':status', '200']]
const onStream = (name: string, bytes: (stream: number) => Buffer | readonly Buffer[], more: Partial<HostileAnswer> = {}): HostileAnswer => ({
  name,
  play: (write, stream) => { const made = bytes(stream); write(Buffer.isBuffer(made) ? made : Buffer.concat(made)) },
  ...more
})
const ok = (stream: number) => frame(DATA, END_STREAM, stream, Buffer.from('ok'))
const whole = (stream: number, lines: Lines) => Buffer.concat([headers(stream, 0, lines), ok(stream)])

function fieldsOfHttp2 (): HostileAnswer[] {
  const twice = [...SINGLE, ...OF_THE_CONNECTION, ':status', ':path', ':authority'].flatMap(name => [['a', 'a'], ['a', 'b'], ['2', '2'], ['2', '3']].map(([first = '', second = '']) => ({ name, first, second })))
  const both = (name: string, lines: Lines): HostileAnswer[] => [
    onStream(name, stream => whole(stream, [...STATUS, ...lines])),
    onStream(`${name}, no body`, stream => headers(stream, END_STREAM, [...STATUS, ...lines])),
    onStream(`${name} in trailers`, stream => [headers(stream, 0, STATUS), frame(DATA, 0, stream, Buffer.from('ok')), headers(stream, END_STREAM, lines)]),
    onStream(`${name} in trailers without a body`, stream => [headers(stream, 0, STATUS), headers(stream, END_STREAM, lines)])
  ]
  return [
    ...twice.flatMap(({ name, first, second }) => both(`${name}: ${first}, ${second}`, [[name, first], [name, second]])),
    ...[...OF_THE_CONNECTION, ...SINGLE].flatMap(name => both(`${name}: x`, [[name, 'x']])),
    ...ODD_NAMES.flatMap(name => both(`name ${JSON.stringify(name.slice(0, 20))}`, [[name, 'x']])),
    ...ODD_VALUES.flatMap((value, index) => both(`value ${index}`, [['x', value]])),
    ...['te', 'TE'].flatMap(name => ['trailers', 'gzip', 'trailers, gzip', ''].flatMap(value => both(`${name}: ${value}`, [[name, value]])))
  ]
}

function statusesOfHttp2 (): HostileAnswer[] {
  return [
    ...STATUSES.flatMap(status => [onStream(`status ${status}`, stream => whole(stream, [[':status', status]])), onStream(`status ${status}, no body`, stream => headers(stream, END_STREAM, [[':status', status]]))]),
    ...(['GET', 'HEAD', 'POST'] as const).flatMap(method => ['100', '103', '200', '204', '205', '206', '304', '421', '500'].flatMap(status => ['0', '2', '9', ''].flatMap(length => {
      const lines: Lines = [[':status', status], ...(length === '' ? [] : [['content-length', length] as const])]
      return [
        onStream(`${method} ${status} ${length} data`, stream => whole(stream, lines), { method }), onStream(`${method} ${status} ${length} alone`, stream => headers(stream, END_STREAM, lines), { method }),
        onStream(`${method} ${status} ${length} empty data`, stream => [headers(stream, 0, lines), frame(DATA, END_STREAM, stream)], { method }),
        onStream(`${method} ${status} ${length} trailers`, stream => [headers(stream, 0, lines), ok(stream), headers(stream, END_STREAM, [['x', 'y']])], { method }),
        onStream(`${method} ${status} ${length} then 200`, stream => [headers(stream, 0, lines), whole(stream, STATUS)], { method })
      ]
    }))),
    onStream('no status', stream => whole(stream, [['x', 'y']])),
    onStream('status behind a field', stream => whole(stream, [['x', 'y'], ...STATUS])),
    onStream('1,000 early answers', stream => [...Array.from({ length: 1_000 }, () => headers(stream, 0, [[':status', '103'], ['link', 'x']])), whole(stream, STATUS)]),
    onStream('header twice', stream => [headers(stream, 0, STATUS), whole(stream, STATUS)]),
    onStream('127 fields', stream => whole(stream, [...STATUS, ...Array.from({ length: 126 }, (_, index) => [`x${index}`, 'y'] as const)])),
    onStream('3,000 fields', stream => whole(stream, [...STATUS, ...Array.from({ length: 3_000 }, (_, index) => [`x${index}`, 'y'] as const)])),
    onStream('100 cookies', stream => whole(stream, [...STATUS, ...Array.from({ length: 100 }, () => ['set-cookie', 'y'] as const)])),
    onStream('60,000 bytes of header', stream => whole(stream, [...STATUS, ['x', 'y'.repeat(60_000)]])),
    onStream('40,000 bytes of trailers', stream => [headers(stream, 0, STATUS), headers(stream, END_STREAM, [['x', 'y'.repeat(40_000)]])])
  ]
}

function framesOfHttp2 (): HostileAnswer[] {
  const moments: [string, (stream: number) => Buffer][] = [['at once', () => Buffer.alloc(0)], ['behind the header', stream => headers(stream, 0, STATUS)], ['in the body', stream => Buffer.concat([headers(stream, 0, STATUS), frame(DATA, 0, stream, Buffer.from('ok'))])], ['behind the end', stream => whole(stream, STATUS)]]
  const odd: [string, (stream: number) => Buffer][] = [
    ...CODES.map((code): [string, (stream: number) => Buffer] => [`RST_STREAM ${code}`, stream => frame(RST_STREAM, 0, stream, word(code))]),
    ...CODES.flatMap((code): [string, (stream: number) => Buffer][] => [[`GOAWAY ${code} of this stream`, stream => frame(GOAWAY, 0, 0, Buffer.concat([word(stream), word(code)]))], [`GOAWAY ${code} of none`, () => frame(GOAWAY, 0, 0, Buffer.concat([word(0), word(code), Buffer.from('why')]))]]),
    ['PUSH_PROMISE', stream => frame(PUSH_PROMISE, END_HEADERS, stream, Buffer.concat([word(2), block([[':method', 'GET'], [':path', '/'], [':scheme', 'https'], [':authority', 'x']])]))],
    ['window 0', stream => frame(WINDOW_UPDATE, 0, stream, word(0))], ['window too large', stream => Buffer.concat([frame(WINDOW_UPDATE, 0, stream, word(0x7fffffff)), frame(WINDOW_UPDATE, 0, stream, word(0x7fffffff))])],
    ['window of the connection too large', () => frame(WINDOW_UPDATE, 0, 0, word(0x7fffffff))], ['1,000 windows', stream => Buffer.concat(Array.from({ length: 1_000 }, () => frame(WINDOW_UPDATE, 0, stream, word(1))))],
    ['1,000 settings', () => Buffer.concat(Array.from({ length: 1_000 }, () => frame(SETTINGS, 0, 0)))], ['10,000 pings', () => Buffer.concat(Array.from({ length: 10_000 }, () => frame(PING, 0, 0, Buffer.alloc(8))))],
    ...[[1, 0], [2, 1], [2, 0], [2, 7], [3, 0], [3, 1], [4, 0], [4, 0x7fffffff], [4, 0xffffffff], [5, 0], [5, 16_383], [5, 0xffffff], [6, 0], [6, 1], [8, 1], [8, 9], [0xffff, 1]].map(([id = 0, value = 0]): [string, (stream: number) => Buffer] => {
      const key = Buffer.alloc(2)
      key.writeUInt16BE(id)
      return [`setting ${id} = ${value}`, () => frame(SETTINGS, 0, 0, Buffer.concat([key, word(value)]))]
    }),
    ['settings of odd length', () => frame(SETTINGS, 0, 0, Buffer.alloc(5))], ['settings acknowledged', () => frame(SETTINGS, 1, 0)], ['settings of a stream', stream => frame(SETTINGS, 0, stream)],
    ['ping of odd length', () => frame(PING, 0, 0, Buffer.alloc(7))], ['ping of a stream', stream => frame(PING, 0, stream, Buffer.alloc(8))], ['priority', stream => frame(PRIORITY, 0, stream, Buffer.alloc(5))], ['priority of itself', stream => frame(PRIORITY, 0, stream, Buffer.concat([word(stream), Buffer.from([0])]))],
    ['an unknown frame', stream => frame(0xbe, 0xff, stream, Buffer.alloc(100))], ['altsvc', () => frame(10, 0, 0, Buffer.from('\0\x01xh3=":1"'))], ['origin', () => frame(12, 0, 0, Buffer.from('\0\x09https://x'))],
    ['data of stream 0', () => frame(DATA, 0, 0, Buffer.from('ok'))], ['data of another stream', () => frame(DATA, 0, 9_999, Buffer.from('ok'))], ['header of another stream', () => headers(9_999, END_STREAM, STATUS)], ['header of an even stream', () => headers(2, END_STREAM, STATUS)],
    ['continuation alone', stream => frame(CONTINUATION, END_HEADERS, stream, block(STATUS))], ['a header without its end', stream => frame(HEADERS, 0, stream, block(STATUS))],
    ['1,000 continuations', stream => Buffer.concat([frame(HEADERS, 0, stream, block(STATUS)), ...Array.from({ length: 1_000 }, () => frame(CONTINUATION, 0, stream, block([['x', 'y'.repeat(50)]])))])], ['10,000 empty continuations', stream => Buffer.concat([frame(HEADERS, 0, stream, block(STATUS)), ...Array.from({ length: 10_000 }, () => frame(CONTINUATION, 0, stream))])],
    ['broken HPACK', stream => frame(HEADERS, END_HEADERS, stream, Buffer.alloc(50, 0xff))], ['empty HPACK', stream => frame(HEADERS, END_HEADERS, stream)], ['HPACK table', stream => frame(HEADERS, END_HEADERS, stream, Buffer.from([0x3f, 0xff, 0xff, 0xff, 0x0f]))],
    ['padding too long', stream => frame(DATA, 8, stream, Buffer.from([200, 1]))], ['padding alone', stream => frame(DATA, 8, stream, Buffer.from([0]))], ['10,000 empty data frames', stream => Buffer.concat(Array.from({ length: 10_000 }, () => frame(DATA, 0, stream)))],
    ['50,000 data frames of a byte', stream => Buffer.concat(Array.from({ length: 50_000 }, () => frame(DATA, 0, stream, Buffer.from('x'))))], ['more data than the window', stream => Buffer.concat(Array.from({ length: 200 }, () => frame(DATA, 0, stream, Buffer.alloc(16_384))))],
    ['a frame that is too large', stream => frame(DATA, 0, stream, Buffer.alloc(20_000))], ['a reset of odd length', stream => frame(RST_STREAM, 0, stream, Buffer.alloc(3))], ['HTTP/1.1', () => Buffer.from('HTTP/1.1 200 OK\r\n\r\n')], ['noise', () => Buffer.alloc(1_000, 0x5a)]
  ]
  const cases = (['GET', 'POST'] as const).flatMap(method => moments.flatMap(([moment, before]) => odd.map(([name, bytes]) => onStream(`${method} ${name} ${moment}`, stream => [before(stream), bytes(stream)], { method }))))
  const ends: [string, (socket: Socket) => void][] = [['end', socket => { socket.end() }], ['reset', socket => { socket.resetAndDestroy() }]]
  return [...cases, ...moments.flatMap(([moment, before]) => ends.map(([name, end]): HostileAnswer => ({ name: `the connection's ${name} ${moment}`, play: (write, stream, socket) => { write(before(stream)); end(socket) } })))]
}

/** Likewise over HTTP/2, and each frame of the grid at each moment of an answer, within a header and around trailers, too. */
function combinationsOfHttp2 (): HostileAnswer[] {
  const data = (stream: number) => frame(DATA, 0, stream, Buffer.from('ok'))
  const moments: [string, (stream: number) => Buffer[], (stream: number) => Buffer[]][] = [
    ['at once', () => [], stream => [whole(stream, STATUS)]],
    ['within the header', stream => [frame(HEADERS, 0, stream, block(STATUS))], stream => [frame(CONTINUATION, END_HEADERS, stream), ok(stream)]],
    ['behind the header', stream => [headers(stream, 0, STATUS)], stream => [ok(stream)]],
    ['before trailers', stream => [headers(stream, 0, STATUS), data(stream)], stream => [headers(stream, END_STREAM, [['x', 'y']])]],
    ['within trailers', stream => [headers(stream, 0, STATUS), data(stream), frame(HEADERS, END_STREAM, stream, block([['x', 'y']]))], stream => [frame(CONTINUATION, END_HEADERS, stream)]],
    ['behind trailers', stream => [headers(stream, 0, STATUS), data(stream), headers(stream, END_STREAM, [['x', 'y']])], () => []]
  ]
  return [
    ...STATUSES.flatMap(status => [
      ...(['HEAD', 'POST'] as const).map(method => onStream(`${method} status ${status}`, stream => whole(stream, [[':status', status]]), { method })),
      onStream(`status ${status} with trailers`, stream => [headers(stream, 0, [[':status', status]]), data(stream), headers(stream, END_STREAM, [['x', 'y']])]),
      onStream(`status ${status} before another answer`, stream => [headers(stream, 0, [[':status', status]]), whole(stream, STATUS)]),
      onStream(`status ${status} in trailers`, stream => [headers(stream, 0, STATUS), data(stream), headers(stream, END_STREAM, [[':status', status]])])
    ]),
    ...[...SINGLE, ...OF_THE_CONNECTION].flatMap(name => [['a', 'a'], ['1', '2']].flatMap(([first = '', second = '']) => {
      const lines: Lines = [[name, first], [name, second]]
      return [
        onStream(`${name}: ${first}, ${second} in an early answer`, stream => [headers(stream, 0, [[':status', '103'], ...lines]), whole(stream, STATUS)]),
        ...['204', '304'].map(status => onStream(`${name}: ${first}, ${second} of ${status}`, stream => headers(stream, END_STREAM, [[':status', status], ...lines]))),
        onStream(`HEAD ${name}: ${first}, ${second}`, stream => headers(stream, END_STREAM, [...STATUS, ...lines]), { method: 'HEAD' }),
        onStream(`${name}: ${first}, ${second} in the head and in trailers`, stream => [headers(stream, 0, [...STATUS, [name, first]]), data(stream), headers(stream, END_STREAM, [[name, second]])]),
        onStream(`${name}: ${first}, ${second} of 401 to a POST`, stream => whole(stream, [[':status', '401'], ...lines]), { method: 'POST' })
      ]
    })),
    ...frameGrid().flatMap(({ name, bytes }) => moments.map(([moment, before, behind]) => onStream(`${name}, ${moment}`, stream => [...before(stream), bytes(stream), ...behind(stream)])))
  ]
}

/** What an HTTP/2 origin answers. */
export function answersOfHttp2 (): HostileAnswer[] {
  return [...statusesOfHttp2(), ...fieldsOfHttp2(), ...framesOfHttp2(), ...combinationsOfHttp2()]
}

/** Codes of resets, for what guests send. */
export const RESET_CODES = [...CODES, constants.NGHTTP2_REFUSED_STREAM]
export { ODD_NAMES, ODD_VALUES }
