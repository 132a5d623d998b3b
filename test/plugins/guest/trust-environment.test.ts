// The environment by which programs find what a guest was given to trust.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { packageRoot } from '../../../core/package-root.ts'
import { GUEST_BUNDLE, GUEST_CERTIFICATE, GUEST_JAVA_STORE, trustEnvironment } from '../../../plugins/guest/trust-environment.ts'

t.test('programs that replace their roots get a bundle, those that add to them the certificate alone', async (t) => {
  const env = trustEnvironment({})
  for (const name of ['SSL_CERT_FILE', 'CURL_CA_BUNDLE', 'REQUESTS_CA_BUNDLE', 'GIT_SSL_CAINFO', 'PIP_CERT', 'AWS_CA_BUNDLE', 'CARGO_HTTP_CAINFO']) t.equal(env[name], GUEST_BUNDLE, name)
  for (const name of ['NODE_EXTRA_CA_CERTS', 'DENO_CERT']) t.equal(env[name], GUEST_CERTIFICATE, name)
  t.notOk(Object.keys(env).some((name) => /INSECURE|REJECT|VERIFY/.test(name)), 'nothing switches checks off')
})

t.test('what the user has set is left out, be it empty', async (t) => {
  const env = trustEnvironment({ SSL_CERT_FILE: '/mine', PIP_CERT: '', OTHER: 'x' })
  t.notOk('SSL_CERT_FILE' in env || 'PIP_CERT' in env || 'OTHER' in env)
  t.equal(env.CURL_CA_BUNDLE, GUEST_BUNDLE)
  t.ok('toString' in env && !Object.hasOwn(env, 'toString') && Object.keys(trustEnvironment({ SSL_CERT_DIR: '/x' })).includes('SSL_CERT_FILE'))
})

t.test('Java has one variable for all options: what an image or the user says there stays, and the user has the last word', async (t) => {
  const options = (user: Readonly<Record<string, string>>, image?: string) => trustEnvironment(user, image === undefined ? {} : { JAVA_TOOL_OPTIONS: image }).JAVA_TOOL_OPTIONS
  const ours = `-Djavax.net.ssl.trustStore=${GUEST_JAVA_STORE}`
  t.equal(options({}), ours)
  t.equal(options({}, '-Xmx1g -Djavax.net.ssl.trustStore=/images'), `-Xmx1g -Djavax.net.ssl.trustStore=/images ${ours}`, 'a store of the image does not have the authority')
  t.equal(options({ JAVA_TOOL_OPTIONS: '-Xmx2g' }, '-Xmx1g'), `${ours} -Xmx2g`, 'as anywhere, the user replaces what the image says')
  t.equal(options({ JAVA_TOOL_OPTIONS: '-Djavax.net.ssl.trustStore=/mine' }, '-Xmx1g'), undefined, 'left as it is')
  t.equal(options({ JAVA_TOOL_OPTIONS: '' }, '-Xmx1g'), undefined, 'an empty one too')
})

t.test('berth-init writes to the same paths', async (t) => {
  const headers = await Promise.all(['place', 'java'].map(async (part) => await readFile(join(packageRoot, `plugins/guest/init/trust-${part}.h`), 'utf8')))
  const value = (name: string) => new RegExp(`#define ${name} "(.*)"`).exec(headers.join('\n'))?.[1]
  t.equal(`${value('TRUST_FOLDER')}/${value('TRUST_BUNDLE')}`, GUEST_BUNDLE)
  t.equal(`${value('TRUST_ANCHOR_FOLDER')}/${value('TRUST_ANCHOR')}`, GUEST_CERTIFICATE)
  t.equal(`${value('TRUST_JAVA_FOLDER')}/${value('TRUST_JAVA')}`, GUEST_JAVA_STORE)
})
