// The gate as a table: what each request is told before anything is sent for it, whatever protocol brought it.
import t from 'tap'
import { REASONS, type ReasonCode } from '../../../proxy/contract/reasons.ts'
import { admit, destinationOf, type Arrival, type Circumstances, type Way } from '../../../proxy/gate/admit.ts'

const PLAIN: Way = { secure: false, port: 80, serverName: undefined }
const SECURE: Way = { secure: true, port: 443, serverName: 'api.example.com' }
const ROOM: Circumstances = { requests: 1, mostRequests: 2, isRecorded: true }
const named = (host: string | undefined, mayOmitHost = false): Arrival => ({ host, mayOmitHost })

const ADMITTED: ReadonlyArray<readonly [name: string, arrival: Arrival | ReasonCode, way: Way, room: Partial<Circumstances>, result: string]> = [
  ['names its host', named('a.test'), PLAIN, {}, '=a.test'],
  ['names its host over TLS', named('b.test'), SECURE, {}, '=b.test'],
  ['HTTP/1.0 over TLS without a host', named(undefined, true), SECURE, {}, '=api.example.com'],
  ['HTTP/1.0 over TLS with one', named('b.test', true), SECURE, {}, '=b.test'],
  ['HTTP/1.0 without TLS and host', named(undefined, true), PLAIN, {}, 'bad_host'],
  ['HTTP/1.1 without a host', named(undefined), SECURE, {}, 'bad_host'],
  ['an empty host is one that names nothing', named(''), PLAIN, {}, '='],
  ['the last that there is room for', named('a.test'), PLAIN, { requests: 2 }, '=a.test'],
  ['one more', named('a.test'), PLAIN, { requests: 3 }, 'too_many_requests'],
  ['nobody could write its line', named('a.test'), PLAIN, { isRecorded: false }, 'audit_unavailable'],
  ['room comes before the log', named('a.test'), PLAIN, { requests: 3, isRecorded: false }, 'too_many_requests'],
  ['room comes before the host', named(undefined), PLAIN, { requests: 3 }, 'too_many_requests'],
  ['the log comes before the host', named(undefined), PLAIN, { isRecorded: false }, 'audit_unavailable'],
  ['a header that was refused stays so', 'method_refused', PLAIN, { requests: 3, isRecorded: false }, 'method_refused']
]

t.test('a request is let in by its header, the room that there is and the log', async (t) => {
  for (const [name, arrival, way, room, result] of ADMITTED) {
    const admitted = admit(arrival, way, { ...ROOM, ...room })
    t.equal(typeof admitted === 'string' ? admitted : `=${admitted.host}`, result, name)
    if (!result.startsWith('=')) t.ok(result in REASONS, result)
  }
})

const DESTINATIONS: ReadonlyArray<readonly [written: string, way: Way, result: string]> = [
  ['api.example.com', SECURE, 'api.example.com'],
  ['API.Example.COM', SECURE, 'api.example.com'],
  ['api.example.com:443', SECURE, 'api.example.com'],
  ['api.example.com:80', SECURE, 'misdirected'],
  ['api.example.com:8443', SECURE, 'misdirected'],
  ['other.example.com', SECURE, 'misdirected'],
  ['example.com', SECURE, 'misdirected'],
  ['api.example.com.evil.test', SECURE, 'misdirected'],
  ['api.example.com', { ...SECURE, serverName: undefined }, 'misdirected'],
  ['api.example.com:8443', { ...SECURE, port: 8443 }, 'api.example.com'],
  ['api.example.com', { ...SECURE, port: 8443 }, 'api.example.com'],
  ['a.test', PLAIN, 'a.test'],
  ['a.test:80', PLAIN, 'a.test'],
  ['a.test:443', PLAIN, 'misdirected'],
  ['192.0.2.1', PLAIN, '192.0.2.1'],
  ['', PLAIN, 'bad_host'],
  ['a b', PLAIN, 'bad_host'],
  ['a.test,b.test', PLAIN, 'bad_host'],
  ['user@a.test', PLAIN, 'bad_host'],
  ['a.test:', PLAIN, 'bad_host'],
  ['a.test:x', PLAIN, 'bad_host'],
  ['a.test/path', PLAIN, 'bad_host'],
  ['a.test\u0000', PLAIN, 'bad_host']
]

t.test('a request goes where its host and its connection agree', async (t) => {
  for (const [written, way, result] of DESTINATIONS) {
    const destination = destinationOf(written, way)
    t.equal(typeof destination === 'string' ? destination : destination.name, result, `${JSON.stringify(written)} over ${way.secure ? `TLS for ${way.serverName ?? 'nobody'}` : 'plain HTTP'} to ${way.port}`)
  }
})
