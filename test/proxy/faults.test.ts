// What an origin or a guest sends that Node throws for: each ends its own request and nothing else. The long tables of the same kind are in hostile-*.long.test.ts.
import t from 'tap'
import { eventually } from '../helpers/eventually.ts'
import { setArena, type Outcome } from './helpers/arena.ts'
import { DATA, END_STREAM, frame, headers, RST_STREAM, word } from './helpers/frames.ts'

const statusOf = (outcome: Outcome): number | string => typeof outcome === 'string' ? outcome : outcome.status
const HEAD = 'HTTP/1.1 200 OK\r\n'
const LAST = 'Content-Length: 2\r\n\r\nok'

t.test('an answer of an HTTP/1.1 origin that Node would throw for comes out right or is a 502', async (t) => {
  const arena = await setArena(t)
  const { http1, plain } = arena.names
  const cases: [name: string, answer: string, status: number][] = [
    ['Trailer with a length', `${HEAD}Trailer: X-Sum\r\n${LAST}`, 200],
    ['status 999', `HTTP/1.1 999 Odd\r\n${LAST}`, 502],
    ['status 600', `HTTP/1.1 600 Odd\r\n${LAST}`, 502],
    ['one date, twice', `${HEAD}Date: x\r\nDate: x\r\n${LAST}`, 200],
    ['two types', `${HEAD}Content-Type: a/b\r\nContent-Type: c/d\r\n${LAST}`, 502],
    ['two options', `${HEAD}X-Content-Type-Options: nosniff\r\nX-Content-Type-Options: none\r\n${LAST}`, 502],
    ['two codings, which are a list', `${HEAD}Content-Encoding: a\r\nContent-Encoding: b\r\n${LAST}`, 200],
    ['204 with a length', 'HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n', 204],
    ['205 with a body', `HTTP/1.1 205 Reset Content\r\n${LAST}`, 205],
    ['304 with trailers announced', 'HTTP/1.1 304 Not Modified\r\nTrailer: X-Sum\r\n\r\n', 304],
    ['a name of Object', `${HEAD}__proto__: x\r\nconstructor: y\r\n${LAST}`, 200]
  ]
  for (const [name, answer, status] of cases) {
    arena.play = write => write(answer)
    for (const [way, outcome] of [['plain', await arena.viaHttp1(plain)], ['HTTP/1.1', await arena.viaHttp1(http1)], ['HTTP/2', await arena.viaHttp2(http1)]] as const) {
      t.equal(statusOf(outcome), status, `${name}, ${way}`)
    }
  }
  arena.play = write => write(`${HEAD}Date: x\r\nDate: x\r\nContent-Encoding: a\r\nContent-Encoding: b\r\n${LAST}`)
  t.match(await arena.viaHttp1(http1), { headers: { date: 'x', 'content-encoding': 'a, b' } })
  t.match(await arena.viaHttp2(http1), { headers: { date: 'x', 'content-encoding': 'a, b' } })
  await arena.held(t)
})

t.test('trailers with a single-value field come out with one value, or the answer is cut off', async (t) => {
  const arena = await setArena(t)
  const { http1, http2 } = arena.names
  for (const [second, isWhole] of [['"a"', true], ['"b"', false]] as const) {
    arena.play = write => write(`${HEAD}Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nETag: "a"\r\nETag: ${second}\r\nSet-Cookie: x\r\n\r\n`)
    const [first, other] = [await arena.viaHttp1(http1), await arena.viaHttp2(http1)]
    arena.play = (write, stream) => write(Buffer.concat([headers(stream, 0, [[':status', '200']]), frame(DATA, 0, stream, Buffer.from('ok')), headers(stream, END_STREAM, [['etag', '"a"'], ['etag', second]])]))
    for (const outcome of [first, other, await arena.viaHttp2(http2)]) {
      if (isWhole) t.match(outcome, { status: 200, body: 'ok', whole: true, trailers: { etag: '"a"' } })
      else t.ok(typeof outcome === 'string' || !outcome.whole, JSON.stringify(outcome))
    }
  }
  await arena.held(t)
})

t.test('an answer of an HTTP/2 origin that Node would throw for comes out right or is a 502', async (t) => {
  const arena = await setArena(t)
  const cases: [name: string, lines: [string, string][], status: number][] = [
    ['status 999', [[':status', '999']], 502],
    ['status 000', [[':status', '000']], 502],
    ['one date, twice', [[':status', '200'], ['date', 'x'], ['date', 'x']], 200],
    ['two dates', [[':status', '200'], ['date', 'x'], ['date', 'y']], 502],
    ['two types', [[':status', '200'], ['content-type', 'a/b'], ['content-type', 'c/d']], 502],
    ['205', [[':status', '205']], 205]
  ]
  for (const [name, lines, status] of cases) {
    arena.play = (write, stream) => write(Buffer.concat([headers(stream, 0, lines), frame(DATA, END_STREAM, stream, Buffer.from('ok'))]))
    t.equal(statusOf(await arena.viaHttp2(arena.names.http2)), status, name)
  }
  await arena.held(t)
})

t.test('a guest\'s trailers with a single-value field, and its resets, end its own request', async (t) => {
  const arena = await setArena(t)
  const { http1, http2 } = arena.names
  for (const [index, name] of [http1, http2].entries()) {
    let arrived = 0
    arena.play = () => { arrived++ }
    const lines: [string, string][] = [[':method', 'POST'], [':path', '/'], [':scheme', 'https'], [':authority', arena.stage.host(name)]]
    const socket = await arena.rawHttp2(name)
    socket.resume()
    for (const [place, code] of [0, 8, 0xffffffff].entries()) {
      const stream = 1 + place * 2
      socket.write(Buffer.concat([headers(stream, 0, lines), frame(DATA, 0, stream, Buffer.from('body'))]))
      await eventually('the request is at its origin', () => arrived > place)
      socket.write(frame(RST_STREAM, 0, stream, word(code)))
    }
    socket.write(Buffer.concat([headers(7, 0, lines), frame(DATA, 0, 7, Buffer.from('body'))]))
    await eventually('the request is at its origin', () => arrived > 3)
    socket.write(headers(7, END_STREAM, [['etag', '"a"'], ['etag', '"b"']]))
    const entries = await arena.stage.proxy.audited(`vm-${arena.stage.guest}`, found => found.length >= (index + 1) * 4)
    t.same(entries.slice(index * 4).map(({ reason }) => reason), ['guest_closed', 'guest_closed', 'guest_closed', 'bad_request'], JSON.stringify(entries))
    socket.destroy()
  }
  await arena.held(t)
})
