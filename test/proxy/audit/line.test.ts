// A line of the log of requests is put together by hand, and must read as what JSON.stringify writes.
import t from 'tap'
import { auditLine, vmOfLine, withoutTrace, type AuditRecord } from '../../../proxy/audit/line.ts'

const RECORD: AuditRecord = { vm: 'box', revision: 3, protocol: 'http/1.1', host: 'api.good.test', port: 443, method: 'GET', path: '/v1', status: 200, injected: ['TOKEN'], reason: undefined, bytesIn: 1, bytesOut: 2, durationMs: 1.239 }
/** What JSON has other characters for, what looks like the line itself, and what is no text at all. */
const TEXTS = ['', '"', '\\', '\\"', 'a"b\\', '","time":"', '\\","time":"', '\u0000\u001f\u007f', '\n\r\t', '\u2028', 'é', '\u{1f600}', '\ud800', '{"vm":"', '}', ' ~!#[]', 'ÿ"']

t.test('whatever a guest wrote, the line is JSON that says the same, and ends with the only line feed', async (t) => {
  for (const text of TEXTS) {
    const line = auditLine({ ...RECORD, vm: text, host: text, method: text, path: text, injected: [text, text] })
    t.equal(line.indexOf('\n'), line.length - 1)
    const { time, ...read } = JSON.parse(line)
    t.strictSame(read, { vm: text, revision: 3, protocol: 'http/1.1', host: text, port: 443, method: text, path: text, status: 200, injected: [text, text], bytesIn: 1, bytesOut: 2, durationMs: 1.24 })
    t.ok(Math.abs(Date.parse(time) - Date.now()) < 60_000)
    t.match(line, /^[ -~]*\n$/, 'in ASCII')
    t.equal(vmOfLine(line), text)
    t.equal(vmOfLine(line), text, 'and again')
  }
})

t.test('what is absent has no key, the query stays away, and long texts are cut', async (t) => {
  const { method, path, status, ...without } = RECORD
  const { time, ...read } = JSON.parse(auditLine({ ...without, injected: [], reason: 'bad_host' }))
  t.match(time, /^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/)
  t.strictSame(read, { vm: 'box', revision: 3, protocol: 'http/1.1', host: 'api.good.test', port: 443, injected: [], reason: 'bad_host', bytesIn: 1, bytesOut: 2, durationMs: 1.24 })
  t.equal(JSON.parse(auditLine({ ...RECORD, path: '/v1?key=secret' })).path, '/v1')
  t.equal(JSON.parse(auditLine({ ...RECORD, host: 'x'.repeat(5_000) })).host.length, 2_048)
})

t.test('half a line, or something else, is nobody\'s', async (t) => {
  const line = auditLine(RECORD).slice(0, -1)
  for (const cut of [line.slice(0, -1), line.slice(1), line.slice(0, 8), '', '{"vm":"x"}', '{"host":"x","vm":"box","time":"now"}', '{"vm":"\\x","time":"now"}']) t.equal(vmOfLine(`${cut}\n`), undefined, cut)
  t.equal(vmOfLine(line), undefined, 'a whole one has a line feed')
})

t.test('the steps of a trace, whatever they say, are taken out of a line', async (t) => {
  for (const text of TEXTS) {
    const line = auditLine({ ...RECORD, path: `${text}}}`, trace: Object.assign({ sentMs: 1 }, { note: text }) })
    const plain = withoutTrace(line)
    t.equal(plain.isTraced, true)
    t.notOk('trace' in JSON.parse(plain.line))
    t.same(withoutTrace(plain.line), { line: plain.line, isTraced: false })
    t.match(line, /^[ -~]*\n$/)
  }
})
