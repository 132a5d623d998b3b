// Policies that cannot be enforced are refused with the place of the fault, and what can be is kept so that nobody sees a secret in it.
import t from 'tap'
import { BerthError } from '../../../core/errors/define.ts'
import { createSecrets } from '../../../core/secrets/secrets.ts'
import type { CredentialRequest, EgressRequest } from '../../../plugins/instances/egress/contract.ts'
import { composeVm } from '../../../plugins/egress/policy/compose.ts'
import { divideEnvironment, guestEnvironment, prepareSpec, rotateSpec } from '../../../plugins/egress/policy/spec.ts'
import { parseRevision } from '../../../proxy/parent/parse-revision.ts'
import { limitMs, msOf } from '../../helpers/processor-time.ts'

const secrets = createSecrets(Buffer.alloc(32, 3))
const SECRET = 'sk-live-abcdefgh'

const rule = (header = 'Authorization', hosts?: readonly string[], format = 'Bearer ${value}') => ({ ...hosts === undefined ? {} : { hosts }, as: { header, format } })
const credential = (...inject: readonly CredentialRequest['inject'][number][]): CredentialRequest => ({ source: { env: 'KEY' }, inject: inject.length === 0 ? [rule()] : inject })

function prepare (credentials: Readonly<Record<string, CredentialRequest>>, env: Readonly<Record<string, string>> = { KEY: SECRET }, mode: EgressRequest['mode'] = 'all') {
  return prepareSpec({ mode, credentials, env }, secrets)
}

/** The sentence of the refusal. */
function refusal (t: { equal (a: unknown, b: unknown): unknown, notMatch (a: string, b: RegExp): unknown }, act: () => unknown): string {
  try {
    act()
  } catch (error) {
    if (!(error instanceof BerthError)) throw error
    t.equal(error.code, 'invalid_request')
    t.notMatch(`${error.message}${String(error.stack)}`, /sk-live/)
    return error.message
  }
  return 'it was taken'
}

t.test('headers that belong to the transport, and what is none', (t) => {
  for (const header of ['Host', 'content-length', 'Transfer-Encoding', 'Transfer_Encoding', 'Connection', 'Proxy-Authorization', 'X-Forwarded-For', 'Sec-WebSocket-Key', 'Expect', 'TE', '', 'A B', 'X:Y', 'X\r\nY', 'ü', '__proto__', 'x'.repeat(257)]) {
    t.match(refusal(t, () => prepare({ OPENAI: credential(rule('X-Fine'), rule(header)) })), /^credentials\.OPENAI\.inject\[1\]\.as\.header: /, JSON.stringify(header))
  }
  for (const header of ['Authorization', 'X-Api-Key', 'x_api_key', 'Cookie', '!#$%&\'*+.^_`|~']) prepare({ OPENAI: credential(rule(header)) })
  t.end()
})

t.test('patterns of hosts that are too wide, or none', (t) => {
  for (const host of ['*', '*.com', 'a.*.b', '*.*.example.com', 'a*.example.com', '*example.com', '', '.', 'example..com', 'example.com.', '-a.example.com', '127.0.0.1', '[::1]', '::1', '0x7f.1', 'exa mple.com', 'example.com:443', 'https://example.com', 'ünïcode.com', 'a'.repeat(64) + '.com', `${'a.'.repeat(200)}com`, 'x'.repeat(300)]) {
    t.match(refusal(t, () => prepare({ OPENAI: credential(rule('Authorization', ['good.example.com', host])) })), /^credentials\.OPENAI\.inject\[0\]\.hosts\[1\]: /, JSON.stringify(host))
  }
  t.match(refusal(t, () => prepare({ OPENAI: credential(rule('Authorization', [])) })), /^credentials\.OPENAI\.inject\[0\]\.hosts: must name at least one host/)
  t.match(refusal(t, () => prepare({ OPENAI: credential(rule('Authorization', Array.from({ length: 257 }, (_, index) => `h${index}.example.com`))) })), /^credentials\.OPENAI\.inject\[0\]\.hosts: has 257 entries/)
  for (const host of ['example.com', 'EXAMPLE.com', '*.example.com', 'localhost', 'a-b.example.com', 'xn--nxasmq6b.example']) prepare({ OPENAI: credential(rule('Authorization', [host])) })
  t.end()
})

t.test('formats', (t) => {
  for (const format of ['', 'Bearer', 'Bearer $value', 'Bearer ${VALUE}', 'a\n${value}', 'a\r${value}', '\0${value}', ' ${value}', '${value} ', '€${value}', `${'x'.repeat(4096)}\${value}`]) {
    t.match(refusal(t, () => prepare({ OPENAI: credential(rule('Authorization', undefined, format)) })), /^credentials\.OPENAI\.inject\[0\]\.as\.format: /, JSON.stringify(format.slice(0, 20)))
  }
  for (const format of ['${value}', 'Bearer ${value}', 'a=${value}; b=${value}', '$&${value}']) prepare({ OPENAI: credential(rule('Authorization', undefined, format)) })
  t.end()
})

t.test('names and sources', (t) => {
  for (const name of ['', '1A', 'A-B', 'A B', 'A=B', 'ü', '__proto__', 'A'.repeat(256)]) t.match(refusal(t, () => prepare(Object.fromEntries([[name, credential()]]))), /^credentials: ".*" is no name for a variable/, name)
  for (const env of ['', 'A B', '__proto__']) t.match(refusal(t, () => prepare({ OPENAI: { ...credential(), source: { env } } })), /^credentials\.OPENAI\.source\.env: /)
  const without: Readonly<Record<string, string>>[] = [{}, { KEY: '' }, { OTHER: 'x' }]
  for (const env of without) t.match(refusal(t, () => prepare({ OPENAI: credential() }, env)), /^credentials\.OPENAI\.source\.env: env has no variable "KEY" with a value/)
  for (const env of ['constructor', 'toString', 'hasOwnProperty']) t.match(refusal(t, () => prepare({ OPENAI: { ...credential(), source: { env } } })), /^credentials\.OPENAI\.source\.env: env has no variable/)
  t.match(refusal(t, () => prepare({ OPENAI: { source: { env: 'KEY' }, inject: [] } })), /^credentials\.OPENAI\.inject: needs at least one entry/)
  t.match(refusal(t, () => prepare(Object.fromEntries(Array.from({ length: 257 }, (_, index) => [`C${index}`, credential(rule(`X-${index}`))])))), /^credentials: have 257 entries of inject together/)
  t.end()
})

t.test('values that no header can hold are named by their variable, also in a rotation', (t) => {
  const spec = prepare({ OPENAI: credential() })
  for (const value of ['sk-live\n', 'sk-live\r\nX: y', '\0sk-live', ' sk-live', 'sk-live\t', 'sk-live\x7f', 'sk-live€', `sk-live${'x'.repeat(16_384)}`, 'mock-OPENAI']) {
    t.match(refusal(t, () => prepare({ OPENAI: credential() }, { KEY: value })), /^env\.KEY: /, JSON.stringify(value.slice(0, 20)))
    t.match(refusal(t, () => rotateSpec(spec, { KEY: value }, secrets)), /^env\.KEY: /)
  }
  t.match(refusal(t, () => rotateSpec(spec, { KEY: '' }, secrets)), /^env\.KEY: is empty/)
  const long = credential(rule('X-Key', undefined, '${value}${value}${value}'))
  t.match(refusal(t, () => prepare({ OPENAI: long }, { KEY: `sk-live${'x'.repeat(16_000)}` })), /^env\.KEY: makes a header of \d+ characters with credentials\.OPENAI\.inject\[0\]\.as\.format/)
  for (const name of ['OTHER', 'OPENAI', '__proto__', 'constructor', 'a\nb']) t.match(refusal(t, () => rotateSpec(spec, Object.fromEntries([[name, 'x']]), secrets)), /^env\.(OTHER|OPENAI|__proto__|constructor|a\?b): is not the source of a credential/)
  for (const value of ['x', 'sk-live ü', `sk-live${'x'.repeat(16_377)}`, 'mock-OTHER']) prepare({ OPENAI: credential() }, { KEY: value })
  t.end()
})

t.test('a policy that would leave no room for those of other VMs', (t) => {
  const many = credential(...Array.from({ length: 8 }, (_, index) => rule(`X-${index}`)))
  t.match(refusal(t, () => prepare({ OPENAI: many }, { KEY: `sk-live${'x'.repeat(10_000)}` })), /^credentials: the rules with their hosts and values take \d+ bytes together/)
  const spec = prepare({ OPENAI: many })
  t.match(refusal(t, () => rotateSpec(spec, { KEY: `sk-live${'x'.repeat(10_000)}` }, secrets)), /^env: the rules/)
  t.end()
})

t.test('two rules of equal precision that would set one header for one host are refused, and both are named; the more precise of two is no clash', (t) => {
  const both = (one: ReturnType<typeof rule>, other: ReturnType<typeof rule>): string => refusal(t, () => prepare({ A: credential(one), B: credential(other) }))
  const clash = /^credentials\.B\.inject\[0\]\.as\.header: credentials\.A\.inject\[0\]\.as\.header sets the same header/
  t.match(both(rule('Authorization'), rule('authorization')), clash)
  t.match(both(rule('X-Api-Key'), rule('x_api_key')), clash, '- and _ are one to many origins')
  t.match(both(rule('X', ['a.example.com', 'b.example.com']), rule('X', ['c.example.com', 'B.Example.com'])), clash)
  t.match(both(rule('X', ['*.example.com']), rule('X', ['*.example.com'])), clash)
  t.match(refusal(t, () => prepare({ A: credential(rule('X'), rule('X')) })), /^credentials\.A\.inject\[1\]\.as\.header: credentials\.A\.inject\[0\]\.as\.header sets/)
  for (const [one, other] of [[rule('X'), rule('Y')], [rule('X', ['a.example.com']), rule('X', ['b.example.com'])], [rule('X', ['*.example.com']), rule('X', ['example.com'])], [rule('X', ['*.example.com']), rule('X', ['a.b.example.com'])],
    [rule('X', ['*.example.com']), rule('X', ['b.example.com'])], [rule('X'), rule('X', ['*.example.com'])], [rule('X', ['a.example.com']), rule('X')]] as const) {
    t.equal(both(one, other), 'it was taken')
  }
  t.end()
})

t.test('what is stored holds no value, and makes what the proxy takes', (t) => {
  const credentials = { OPENAI: credential(rule('Authorization', ['api.openai.com', '*.openai.com'])), GITHUB: { source: { env: 'GITHUB' }, inject: [rule('X-Token', undefined, '${value}')] } }
  const spec = prepare(credentials, { KEY: SECRET, GITHUB: 'ghp-live', OPEN: 'yes' }, 'http_https_only')
  const stored = JSON.stringify(spec)
  t.notMatch(stored, /live/)
  const again = JSON.parse(stored) as typeof spec
  t.same(again, spec)
  const enforced = { instanceId: 'a', address: '10.0.0.2', epoch: 'e', spec: again }
  const vm = composeVm(enforced, secrets, (error) => { throw error })
  t.same(vm, {
    id: 'a',
    address: '10.0.0.2',
    epoch: 'e',
    mode: 'http_https_only',
    rules: [
      { credential: 'OPENAI', hosts: ['api.openai.com', '*.openai.com'], header: 'Authorization', format: 'Bearer ${value}', value: SECRET, mock: 'mock-OPENAI' },
      { credential: 'GITHUB', header: 'X-Token', format: '${value}', value: 'ghp-live', mock: 'mock-GITHUB' }
    ]
  })
  parseRevision({ revision: 1, denied: ['10.0.0.0/8', '192.0.2.1'], vms: [vm] })
  const rotated = rotateSpec(again, { KEY: 'sk-live-new' }, secrets)
  t.same(composeVm({ ...enforced, spec: rotated }, secrets, (error) => { throw error }).rules.map(({ value }) => value), ['sk-live-new', 'ghp-live'], 'the other value stays')
  t.notMatch(JSON.stringify(rotated), /live/)
  const swapped = { ...spec, sealed: { KEY: spec.sealed['GITHUB'] ?? '', GITHUB: spec.sealed['KEY'] ?? '' } }
  const failures: unknown[] = []
  t.same(composeVm({ ...enforced, spec: swapped }, secrets, (error) => { failures.push(error) }).rules.map(({ value }) => value), ['', ''], 'a value opens in its own place only')
  t.equal(failures.length, 2)
  t.end()
})

t.test('of other variables for a copy some are values of credentials, and the others the guest\'s', (t) => {
  const spec = prepare({ OPENAI: credential(rule('X')), KEY2: { source: { env: 'KEY2' }, inject: [rule('Y')] } }, { KEY: SECRET, KEY2: SECRET })
  t.same(divideEnvironment(spec, { KEY: 'a', KEY2: 'b', OPEN: 'c', constructor: 'd' }), { values: { KEY: 'a', KEY2: 'b' }, variables: { OPEN: 'c', constructor: 'd' } })
  t.match(refusal(t, () => divideEnvironment(spec, { OPENAI: 'sk-live' })), /^env\.OPENAI: .* in KEY$/)
  t.end()
})

t.test('the guest sees mocks, and no source by whatever name', (t) => {
  const credentials = { OPENAI: credential(), KEY2: { source: { env: 'KEY2' }, inject: [rule('X')] } }
  const spec = prepare(credentials, { KEY: SECRET, KEY2: SECRET, PATH: '/bin', OPENAI: 'overridden' })
  t.same(guestEnvironment(spec, { KEY: SECRET, KEY2: SECRET, PATH: '/bin', OPENAI: 'overridden' }), { PATH: '/bin', OPENAI: 'mock-OPENAI', KEY2: 'mock-KEY2' })
  t.same(guestEnvironment(prepare({}, { A: 'b' }), { A: 'b' }), { A: 'b' })
  t.end()
})

t.test('the largest list of rules is checked while nobody waits', (t) => {
  const rules = Array.from({ length: 256 }, (_, at) => rule('Authorization', Array.from({ length: 256 }, (_, host) => `h${host}.r${at}.example.com`)))
  const credentials = Object.fromEntries([0, 64, 128, 192].map((from) => [`KEY_${from}`, credential(...rules.slice(from, from + 64))]))
  const limit = limitMs()
  const took = msOf(() => { t.match(refusal(t, () => prepare(credentials)), /^credentials: the rules with their hosts and values take \d+ bytes together/) })
  t.ok(took < limit, `${took} ms of ${limit}`)
  const last = credential(rule('Authorization', ['h1.r0.example.com']))
  t.match(refusal(t, () => prepare({ FIRST: credential(...rules.slice(0, 64)), LAST: last })), /^credentials\.LAST\.inject\[0\]\.as\.header: credentials\.FIRST\.inject\[0\]\.as\.header sets the same header/)
  t.end()
})
