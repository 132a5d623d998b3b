// What rules may say, and which of them a request falls under.
import t from 'tap'
import { decide } from '../../../plugins/ingress/decide/decide.ts'
import { askedPath, isAmbiguous } from '../../../plugins/ingress/decide/path.ts'
import { openHostsMap, subjectsOf } from '../../../plugins/ingress/certificates/names.ts'
import { checkRules, claimsOf } from '../../../plugins/ingress/rules/check.ts'
import type { IngressRecord } from '../../../plugins/ingress/record.ts'
import { RuleTable } from '../../../plugins/ingress/rules/table.ts'
import type { RuleRequest } from '../../../plugins/ingress/schemas.ts'

const PORTS = { http: [80, 8080], https: [443] }
const rule = (hostname: string, more: Partial<RuleRequest> = {}, match: object = {}): RuleRequest => ({ match: { hostname, ...match }, target: { instance: hostname.includes('{') ? '{instance}' : 'web', port: 3000 }, ...more })

t.test('a rule is stored in lower case, with the first port of its kind', async (t) => {
  t.match(checkRules([rule('App.Example.com'), rule('b.example.com', { tls: true }), rule('c.example.com', {}, { port: 8080, path: '/a/b/' })], PORTS), [
    { hostname: 'app.example.com', port: 80, path: '/', tls: false, redirectHttp: false }, { port: 443, tls: true }, { port: 8080, path: '/a/b' }
  ])
})

t.test('what cannot be served is refused with field and rule', async (t) => {
  const auth = (header: string): Partial<RuleRequest> => ({ request_header_auth: { header, value: 'v'.repeat(32) } })
  for (const [wrong, message] of [
    [rule(''), /^rules\[0\]\.match\.hostname: must have 1 to 253/],
    [rule('a..b'), /the label "" is none/], [rule('-a.b'), /the label "-a"/], [rule('a.*.b'), /the label "\*"/], [rule('bü.example.com'), /label/], [rule('a_b/c.example.com'), /label/],
    [rule('*'), /needs a label of its own/], [rule('{instance}'), /needs a label of its own/], [rule('10.0.0.1'), /not an address/],
    [rule('{instance}.{instance}.example.com'), /stands in it twice/], [rule('x-{instance}.example.com'), /label/], [rule('*.{instance}.example.com'), /either \* or captures/],
    [rule('{instance}.example.com', { target: { instance: 'web', port: 1 } }), /target\.instance: must be a capture/], [rule('{app}.example.com'), /the host name has no \{instance\}/],
    [rule('a.example.com', { target: { instance: 'x{instance}', port: 1 } }), /one capture/],
    [rule('a.example.com', {}, { port: 81 }), /match\.port: this server has plain HTTP on 80, 8080/], [rule('a.example.com', { tls: true }, { port: 80 }), /TLS on 443/],
    [rule('a.example.com', { redirect_http: true }), /redirect_http: needs tls/], [rule('a.{instance}.example.com', { tls: true }), /only the first label may be open/],
    [rule('_open.example.com', { tls: true }), /under which the certificate of \*\.example\.com is kept/], [rule('_.example.com', { tls: true }), /under which the certificate/],
    [rule('a.example.com', {}, { path: 'x' }), /match\.path/], [rule('a.example.com', {}, { path: '/../x' }), /match\.path/], [rule('a.example.com', {}, { path: '/a//b' }), /match\.path/], [rule('a.example.com', {}, { path: '/%41' }), /match\.path/],
    [rule('a.example.com', auth('Authorization')), /request_header_auth\.header: authorization has a meaning/], [rule('a.example.com', auth('Proxy-Thing')), /meaning/], [rule('a.example.com', auth('X-Forwarded-For')), /meaning/],
    [rule('a.example.com', auth('a b')), /must be a header's name/], [rule('a.example.com', auth('x_preview_key')), /of letters, digits and dashes/], [rule('a.example.com', auth('x.key')), /of letters, digits and dashes/]
  ] as const) {
    t.throws(() => checkRules([wrong], PORTS), { code: 'invalid_request', message })
  }
  t.throws(() => checkRules([rule('*.example.com'), rule('{instance}.example.com')], PORTS), { message: /rules\[1\]\.match: takes \*\.example\.com\/ on port 80, as rules\[0\] does/ })
  t.throws(() => checkRules([rule('a.example.com'), rule('a.example.com', { tls: true, redirect_http: true })], PORTS), { message: /rules\[1\]/ })
})

t.test('two spellings of the same hosts are one claim', async (t) => {
  const claim = (hostname: string): string | undefined => claimsOf({ hostname, port: 80, path: '/', redirectHttp: false }, PORTS)[0]?.claim
  t.equal(claim('{a}.example.com'), claim('*.example.com'))
  t.not(claim('a.example.com'), claim('*.example.com'))
})

t.test('the most precise host and the longest path count', async (t) => {
  const rules = checkRules([
    rule('*.example.com'), rule('a.example.com'), rule('a.example.com', {}, { path: '/api' }), rule('a.example.com', {}, { path: '/api/v2' }), rule('{app}.{instance}.com'), rule('{app}.{instance}.org'), rule('a.{instance}.net'), rule('*.b.net'),
    rule('s.example.com', { tls: true, redirect_http: true })
  ].map((each) => each), PORTS).map(({ auth, ...each }) => each)
  const table = new RuleTable([{ id: 'i', name: 'n', createdAt: 0, tags: {}, rules }], 80)
  const found = (host: string, path = '/', port = 80): string | undefined => {
    const { rule: { hostname, path: prefix }, redirect } = table.find({ host, path, port }) ?? { rule: { hostname: 'none', path: '' }, redirect: false }
    return `${hostname}${prefix}${redirect ? ' redirect' : ''}`
  }
  t.equal(found('a.example.com'), 'a.example.com/')
  t.equal(found('a.example.com', '/api'), 'a.example.com/api')
  t.equal(found('a.example.com', '/apis'), 'a.example.com/')
  t.equal(found('a.example.com', '/api/v2/x'), 'a.example.com/api/v2')
  t.equal(found('b.example.com'), '*.example.com/')
  t.equal(found('b.other.com'), '{app}.{instance}.com/')
  t.equal(found('s.example.com'), 's.example.com/ redirect')
  t.equal(found('s.example.com', '/', 443), 's.example.com/')
  t.equal(found('a.example.com', '/', 8080), 'none')
  t.equal(found('x.a.example.com'), 'none')
  t.equal(found('a.b.net'), 'a.{instance}.net/', 'of two that are open in as many labels, the one that is open later')
  t.equal(found('*.example.com'), 'none', 'no host is a pattern')
  t.same(table.find({ host: 'b.c.org', path: '/', port: 80 })?.captures, new Map([['app', 'b'], ['instance', 'c']]))
  t.match(table.find({ host: 'a.example.com', path: '/', port: 80 }), { byFirstSegment: false, hasPaths: true })
  t.match(table.find({ host: 'b.example.com', path: '/', port: 80 }), { byFirstSegment: true, hasPaths: false })
})

t.test('tens of thousands of open hosts hold up neither a change of rules nor a request for a host that nobody has', async (t) => {
  const open = { hostname: '', port: 80, path: '/', instance: 'web', targetPort: 3000, tls: false, redirectHttp: false }
  const record = (n: number): IngressRecord => ({ id: `i${n}`, name: `n${n}`, createdAt: 0, tags: {}, rules: Array.from({ length: 32 }, (_, index) => ({ ...open, hostname: `*.h${n}-${index}.example.com` })) })
  const records = Array.from({ length: 1000 }, (_, n) => record(n))
  const began = performance.now()
  const table = new RuleTable(records, 80)
  for (let asked = 0; asked < 100; asked++) t.equal(table.find({ host: 'nobody.else.example.com', path: '/', port: 80 }), undefined)
  const took = performance.now() - began
  t.match(table.find({ host: 'a.h999-31.example.com', path: '/', port: 80 }), { rule: { hostname: '*.h999-31.example.com' } })
  t.ok(took < 10_000, `${took.toFixed(0)} ms`)
})

t.test('a path is plain only when every program reads it the same way', async (t) => {
  for (const plain of ['/', '/a', '/a/', '/a/b.c/~d_e-f', '/a?b=/../']) t.match(askedPath(plain), { plain: true }, plain)
  for (const other of ['//', '/.', '/..', '/a/../b', '/a%2fb', '/a;b', '/a\\b', '/%zz', '', '*', '/a//b']) t.ok(isAmbiguous(askedPath(other)), other)
  for (const other of ['/#', '/a#b', '/a#/b', '/#/../a', '/a\u00a0b', '/a\u0085b', '/caf\u00c3\u00a9', '/a b']) t.ok(isAmbiguous(askedPath(other)), JSON.stringify(other))
  for (const own of ['/caf%C3%A9/%61', '/a%23b', '/a%20b', '/a%3Fb', '/%61?b#c', '/a?\u00a0']) t.notOk(isAmbiguous(askedPath(own)), own)
  t.equal(askedPath('/%61pi').path, '/api')
})

t.test('a path that a program reads up to a fragment, or to what it takes for a space, leads around no rule with a header', async (t) => {
  const rules = checkRules([rule('a.example.com'), rule('a.example.com', { request_header_auth: { header: 'X-Key', value: 'v'.repeat(32) } }, { path: '/admin' })], PORTS)
    .map(({ auth, ...each }) => ({ ...each, ...auth === undefined ? {} : { auth: { header: auth.header, sealed: 'sealed' } } }))
  const sources = { table: new RuleTable([{ id: 'i', name: 'n', createdAt: 0, tags: {}, rules }], 80), targetOf: async () => await Promise.resolve({ instanceId: 'web', ip: '10.0.0.2' }), secretOf: () => 'v'.repeat(32) }
  const decided = async (uri: string): Promise<unknown> => await decide(sources, { port: 80, host: 'a.example.com', uri, header: () => undefined, client: '192.0.2.1', signal: new AbortController().signal })
  t.match(await decided('/'), { kind: 'forward' })
  t.match(await decided('/admin'), { kind: 'refuse', status: 403 })
  t.match(await decided('/admin?#x'), { kind: 'refuse', status: 403 })
  for (const uri of ['/admin#x', '/admin#', '/admin#/x', '/admin#?x', '/#/../admin', '/admin\u00a0x', '/admin\u0085x']) t.match(await decided(uri), { kind: 'refuse', status: 400 }, JSON.stringify(uri))
  t.match(await decided('/admin%23x'), { kind: 'forward' }, 'what is encoded belongs to the name of a path')
})

t.test('exact hosts under a wildcard keep a certificate of their own', async (t) => {
  const rules = checkRules(['*.example.com', 'a.example.com', 'b.other.com'].map((host) => rule(host, { tls: true })), PORTS).map(({ auth, ...each }) => each)
  const subjects = subjectsOf([{ id: 'i', name: 'n', createdAt: 0, tags: {}, rules }])
  t.same(subjects.map(({ name }) => name), ['_open.example.com', 'a.example.com', 'b.other.com'])
  t.equal(openHostsMap(subjects), 'a.example.com a.example.com;\n"~^[a-z0-9_-]+\\.example\\.com$" _open.example.com;\n')
})
