import t from 'tap'
import { readAnswerHead } from '../../../../proxy/upstream/http1/answer-head.ts'
import { AnswerParser } from '../../../../proxy/upstream/http1/answer-parser.ts'
import { BadAnswer } from '../../../../proxy/gate/bad-answer.ts'

const HEADER_BYTES = 1024

interface Read { readonly status: number, readonly raw: readonly string[], readonly body: string, readonly trailers: readonly string[] | undefined, readonly persistent: boolean }

/** What the parser makes of pieces; `undefined` trailers stand for an answer that is not whole. Memory is written over after each piece, as it is in earnest. */
function read (pieces: readonly string[], { toHead = false, upgrade = false, close = false } = {}): Read {
  let head: { status: number, raw: readonly string[], persistent: boolean } | undefined
  let body = ''
  let trailers: readonly string[] | undefined
  const parser = new AnswerParser({
    answerBegan: began => { head = began },
    answerBody: view => { body += view.toString('latin1') },
    answerEnded: last => { trailers = last }
  }, HEADER_BYTES)
  parser.expect(toHead, upgrade)
  for (const piece of pieces) {
    const view = Buffer.from(piece, 'latin1')
    parser.read(view)
    view.fill('!')
  }
  if (close) parser.close()
  return { status: head?.status ?? 0, raw: head?.raw ?? [], body, trailers, persistent: head?.persistent ?? false }
}

function splits (text: string): string[][] {
  const halves = Array.from({ length: text.length - 1 }, (_, index) => [text.slice(0, index + 1), text.slice(index + 1)])
  return [[text], ...halves, [...text]]
}

const GOOD: Record<string, [text: string, expected: Partial<Read>, options?: Parameters<typeof read>[1]]> = {
  'a body of announced length': ['HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello', { body: 'hello', raw: ['Content-Length', '5'], persistent: true }],
  'a status line without a reason': ['HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n', { body: '', status: 200 }],
  'white space around a value': ['HTTP/1.1 200 OK\r\nX: \t a b \t\r\nY:\r\nContent-Length: 0\r\n\r\n', { raw: ['X', 'a b', 'Y', '', 'Content-Length', '0'] }],
  'chunks with extensions and trailers': ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0a\r\n, and more\r\n0\r\nX-Sum: 1\r\nX-Sum: 2\r\n\r\n', { body: 'hello, and more', trailers: ['X-Sum', '1', 'X-Sum', '2'] }],
  'chunks without trailers': ['HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n1\r\na\r\n000\r\n\r\n', { body: 'a', persistent: true }],
  'early answers': ['HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 404 No\r\nContent-Length: 1\r\n\r\nx', { status: 404, body: 'x', raw: ['Content-Length', '1'] }],
  'an answer to HEAD': ['HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n', { body: '', raw: ['Content-Length', '5'] }, { toHead: true }],
  'no content': ['HTTP/1.1 204 No Content\r\n\r\n', { status: 204, body: '', persistent: true }],
  'not modified, with the length of what it stands for': ['HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n', { status: 304, body: '' }],
  'a body that the connection ends': ['HTTP/1.1 200 OK\r\n\r\nuntil the end', { body: 'until the end', persistent: false }, { close: true }],
  'a connection that ends afterwards': ['HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 1\r\n\r\nx', { body: 'x', persistent: false }],
  'HTTP/1.0': ['HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx', { body: 'x', persistent: false }],
  'HTTP/1.0 that stays': ['HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx', { body: 'x', persistent: true }],
  'a change of protocols that was asked for': ['HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n\r\nHTTP/1.1 bytes', { status: 101, body: 'HTTP/1.1 bytes' }, { upgrade: true, close: true }]
}

for (const [name, [text, expected, options]] of Object.entries(GOOD)) {
  t.test(`read the same however it is cut: ${name}`, async (t) => {
    const whole = read([text], options)
    t.match(whole, { trailers: [], ...expected })
    for (const pieces of splits(text)) t.same(read(pieces, options), whole, pieces.length === 2 ? `cut after ${pieces[0]?.length}` : `${pieces.length} pieces`)
  })
}

const BAD = {
  'another protocol': '220 mail.test ESMTP\r\n',
  'HTTP/2': 'HTTP/2 200 OK\r\n\r\n',
  'HTTP/0.9': '<html>',
  'a status of two digits': 'HTTP/1.1 20 OK\r\n\r\n',
  'a status of four digits': 'HTTP/1.1 2000 OK\r\n\r\n',
  'two spaces before the status': 'HTTP/1.1  200 OK\r\n\r\n',
  'a control character in the reason': 'HTTP/1.1 200 O\x01K\r\n\r\n',
  'an empty line in front': '\r\nHTTP/1.1 200 OK\r\n\r\n',
  'lines that end with LF alone': 'HTTP/1.1 200 OK\nContent-Length: 1\n\nx',
  'LF alone inside of the header': 'HTTP/1.1 200 OK\r\nX: a\nContent-Length: 1\r\n\r\nx',
  'CR alone inside of a line': 'HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n',
  'NUL in a value': 'HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n',
  'a folded line': 'HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n',
  'a space before the colon': 'HTTP/1.1 200 OK\r\nContent-Length : 1\r\n\r\nx',
  'a line without a colon': 'HTTP/1.1 200 OK\r\nContent-Length\r\n\r\n',
  'a name that is none': 'HTTP/1.1 200 OK\r\nX(y): 1\r\n\r\n',
  'an empty name': 'HTTP/1.1 200 OK\r\n: 1\r\n\r\n',
  'two lengths that are the same': 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx',
  'a list of lengths': 'HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\nx',
  'a length with a sign': 'HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\nx',
  'a hexadecimal length': 'HTTP/1.1 200 OK\r\nContent-Length: 0x1\r\n\r\nx',
  'an empty length': 'HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n',
  'a length beyond exact numbers': 'HTTP/1.1 200 OK\r\nContent-Length: 9007199254740993\r\n\r\n',
  'a length and chunks': 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'an unknown coding': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n',
  'a coding before chunked': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
  'chunked twice': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'chunks in HTTP/1.0': 'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'a blank behind a chunk size': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1 \r\nx\r\n0\r\n\r\n',
  'a chunk extension that is no name': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;a =b\r\nx\r\n0\r\n\r\n',
  'a tab behind the length': 'HTTP/1.1 200 OK\r\nContent-Length: 1\t\r\n\r\nx',
  'a tab behind the coding': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\t\r\n\r\n1\r\nx\r\n0\r\n\r\n',
  'a length in trailers': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 1\r\n\r\n',
  'an early answer that ends the connection': 'HTTP/1.1 103 Early Hints\r\nConnection: close\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n',
  'a chunk without a size': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n;a\r\n',
  'a chunk size with a sign': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+1\r\nx\r\n0\r\n\r\n',
  'a chunk size with a prefix': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\nx\r\n0\r\n\r\n',
  'white space before a chunk size': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n 1\r\nx\r\n0\r\n\r\n',
  'a chunk size beyond exact numbers': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000\r\n',
  'LF alone behind a chunk size': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\nx\r\n0\r\n\r\n',
  'LF inside of a chunk extension': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;a\nb\r\nx\r\n0\r\n\r\n',
  'a chunk that is longer than it says': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n',
  'a trailer that is no line': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX\r\n\r\n',
  'a header that is too large': `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(HEADER_BYTES)}\r\n\r\n`,
  'a header without an end': `HTTP/1.1 200 OK\r\n${'X: y\r\n'.repeat(HEADER_BYTES / 6 + 1)}`,
  'early answers without an end': `HTTP/1.1 100 Continue\r\nX: ${'x'.repeat(100)}\r\n\r\n`.repeat(9),
  'an extension without an end': `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;${'x'.repeat(4096)}`,
  'trailers without an end': `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n${'X: y\r\n'.repeat(HEADER_BYTES / 6 + 1)}`,
  'a change of protocols that nobody asked for': 'HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n\r\n',
  'bytes behind the answer': 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxy',
  'another answer behind the answer': 'HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n',
  'a body behind an answer to HEAD': 'HTTP/1.1 304 Not Modified\r\nContent-Length: 1\r\n\r\nx'
}

t.test('A49: what could be read in two ways is no answer, whether it comes at once or byte by byte', async (t) => {
  for (const [name, text] of Object.entries(BAD)) {
    for (const pieces of [[text], [...text]]) t.throws(() => read(pieces), new BadAnswer(), `${name}, ${pieces.length} pieces`)
  }
})

t.test('an answer that is cut off is not whole', async (t) => {
  for (const text of ['', 'HTTP/1.1 200', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n']) {
    t.equal(read([text], { close: true }).trailers, undefined, JSON.stringify(text))
  }
})

t.test('how long the origin keeps the connection is read from Keep-Alive', async (t) => {
  t.equal(readAnswerHead('HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5, max=100\r\nContent-Length: 0', false).keptMs, 5_000)
  for (const value of ['max=100', 'timeout=never', 'xtimeout=5']) {
    t.equal(readAnswerHead(`HTTP/1.1 200 OK\r\nKeep-Alive: ${value}\r\nContent-Length: 0`, false).keptMs, Number.POSITIVE_INFINITY, value)
  }
})
