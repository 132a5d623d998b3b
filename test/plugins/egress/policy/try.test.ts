// What a policy would do with a request, before anybody has it.
import t from 'tap'
import { createSecrets } from '../../../../core/secrets/secrets.ts'
import { tryPolicy } from '../../../../plugins/egress/policy/try.ts'
import type { EgressTrial, EgressVerdict } from '../../../../plugins/instances/egress/contract.ts'

const CREDENTIALS: EgressTrial['credentials'] = {
  OPENAI: { source: { env: 'KEY' }, inject: [{ hosts: ['*.example.com'], as: { header: 'Authorization', format: 'Bearer ${value}' } }] },
  EXACT: { source: { env: 'OTHER' }, inject: [{ hosts: ['api.example.com'], as: { header: 'authorization', format: '${value}' } }, { as: { header: 'X-Everywhere', format: '${value}' } }] }
}
const place = { secrets: createSecrets(Buffer.alloc(32, 3)), ports: { http: [80], https: [443, 8443] }, ranges: { allowPrivate: ['10.1.0.0/16'], deny: ['198.18.0.0/15'] }, denied: ['203.0.113.7'] }
const verdict = (url: string, mode: EgressTrial['mode'] = 'all', credentials = CREDENTIALS): EgressVerdict => tryPolicy({ url, mode, credentials }, place)

t.test('credentials go to the hosts of their rules, the most precise one alone, and over TLS only', (t) => {
  t.match(verdict('https://api.example.com/v1?x'), { decision: 'allow', host: 'api.example.com', port: 443, protocol: 'https', needs_address: true, injected: ['EXACT'], headers: ['authorization', 'X-Everywhere'] })
  t.same(verdict('https://www.example.com').injected.sort(), ['EXACT', 'OPENAI'])
  t.same(verdict('https://Elsewhere.test:8443/').headers, ['X-Everywhere'])
  t.match(verdict('http://api.example.com/'), { decision: 'allow', port: 80, injected: [], headers: [] })
  t.match(verdict('https://plain.test', 'all', {}), { decision: 'allow', injected: [] })
  t.end()
})

t.test('what no guest may reach is refused with the reason that the log of requests has', (t) => {
  for (const host of ['169.254.169.254', 'metadata.google.internal', '[fd00:ec2::254]']) t.match(verdict(`http://${host}/`), { decision: 'refuse', reason: 'metadata_refused', message: /Metadata/ }, host)
  t.match(verdict('https://192.168.1.1/'), { decision: 'refuse', reason: 'private_address', needs_address: false, injected: [] })
  t.match(verdict('https://10.1.2.3/'), { decision: 'allow', needs_address: false }, 'an allowed network')
  for (const host of ['198.18.0.1', '203.0.113.7']) t.match(verdict(`https://${host}/`), { decision: 'refuse', reason: 'own_address' }, host)
  t.end()
})

t.test('other ports are shut, or go beside the proxy', (t) => {
  t.match(verdict('https://api.example.com:9000/'), { decision: 'refuse', reason: 'port_not_mediated', message: /443, 8443 by https/ })
  t.match(verdict('https://api.example.com:9000/', 'http_https_only'), { decision: 'direct', injected: [] })
  t.match(verdict('http://api.example.com:443/'), { decision: 'refuse', reason: 'port_not_mediated' })
  t.end()
})

t.test('what is wrong is named', (t) => {
  for (const url of ['ftp://a.test/', 'api.example.com', '', 'https://', 'https://a..b/', 'https://user@a.test/', 'https://a.test:99999/', 'https://0x7f.1/']) t.throws(() => verdict(url), { code: 'invalid_request', message: /^url: must / }, url)
  t.throws(() => verdict('https://a.test', 'all', { OPENAI: { source: { env: 'KEY' }, inject: [{ as: { header: 'Host', format: '${value}' } }] } }), { message: /^credentials\.OPENAI\.inject\[0\]\.as\.header: / })
  t.end()
})
