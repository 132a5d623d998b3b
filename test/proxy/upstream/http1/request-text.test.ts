import t from 'tap'
import { requestText } from '../../../../proxy/upstream/http1/request-text.ts'

t.test('what would end the line that it stands in is never written', async (t) => {
  for (const path of ['', '/a b', '/\r\nX: y', '/\u010a', '/\t', '/\0']) {
    t.equal(requestText({ method: 'GET', path, lines: ['Host', 'api.good.test'], body: 0 }), undefined, JSON.stringify(path))
  }
  for (const method of ['', 'GET /', 'GET\r\n', 'G\u010a']) t.equal(requestText({ method, path: '/', lines: [], body: 0 }), undefined, JSON.stringify(method))
  for (const line of [['X', 'a\r\nY: b'], ['X', 'a\nY: b'], ['X', 'a\0'], ['X', '\u010a'], ['X: a\r\nY', 'b'], ['X ', 'a'], ['', 'a'], [':path', '/']]) {
    t.equal(requestText({ method: 'GET', path: '/', lines: line, body: 0 }), undefined, JSON.stringify(line))
  }
})

t.test('everything else is written byte for byte', async (t) => {
  const text = requestText({ method: 'PATCH', path: '//a%20b?c=\u00e9', lines: ['hOsT', 'api.good.test', 'X-Empty', '', 'x-latin', 'caf\u00e9\tau lait'], body: 'chunked' })
  t.equal(text, 'PATCH //a%20b?c=\u00e9 HTTP/1.1\r\nhOsT: api.good.test\r\nX-Empty: \r\nx-latin: caf\u00e9\tau lait\r\nTransfer-Encoding: chunked\r\n\r\n')
})
