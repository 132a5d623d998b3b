// Certificates of ingresses: the operator's own files, and those that a real ACME authority issues.
import { once } from 'node:events'
import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connect as connectTls, type PeerCertificate } from 'node:tls'
import t from 'tap'
import { Lego } from '../../../plugins/ingress/certificates/lego.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { makeAuthority, replaceFile } from '../../core/tls/certificates.ts'
import { eventually } from '../../helpers/eventually.ts'
import { noPebble, startPebble, type Pebble } from '../../helpers/pebble.ts'
import { setStage, skipReason, type Server, type ServerChanges, type Stage } from './stage.ts'

const to = (hostname: string) => ({ match: { hostname }, target: { instance: 'web', port: 8080 }, tls: true })

/** The certificate that is served for a name. */
async function served (stage: Stage, servername: string): Promise<PeerCertificate | undefined> {
  const socket = connectTls({ host: '127.0.0.1', port: stage.https, servername, rejectUnauthorized: false })
  try {
    await once(socket, 'secureConnect')
    return socket.getPeerCertificate()
  } catch {
    return undefined
  } finally {
    socket.destroy()
  }
}

const using = (pebble: Pebble, more: NonNullable<ServerChanges['certificates']>['acme'] = {}): ServerChanges => ({ certificates: { acme: { directory: pebble.directory, authority: pebble.authority, email: 'admin@example.com', ...more } } })
const viewOf = ({ ingresses }: Server) => ingresses.view(ingresses.get('site'))
const certificateOf = (server: Server) => viewOf(server).certificates?.[0]

t.test('an operator\'s own certificate serves the hosts that it names, and its successor is taken into use', { skip: skipReason() }, async (t) => {
  const stage = await setStage(t)
  await stage.instance('web')
  const folder = join(stage.world.folder, 'own')
  await mkdir(folder)
  const authority = await makeAuthority(folder)
  const files = await authority.issue('first', ['DNS:shop.test', 'DNS:*.shop.test'])
  const server = await stage.server({ certificates: { files: [files] } })
  await server.ingresses.create({ name: 'site', rules: [to('shop.test'), to('*.shop.test'), to('deep.api.shop.test')] })
  t.match(viewOf(server), { served: true, certificates: [{ host: '*.shop.test', source: 'files', issuer: 'CN=tests', problem: null }, { host: 'deep.api.shop.test', source: 'own', issuer: /Berth ingress/ }, { host: 'shop.test', source: 'files' }] })
  const dates = certificateOf(server)
  t.ok(Date.parse(String(dates?.not_after)) - Date.parse(String(dates?.not_before)) > 9 * 86_400_000, 'its dates are shown')
  t.equal((await served(stage, 'shop.test'))?.subject.CN, 'first')
  t.equal((await served(stage, 'any.shop.test'))?.subject.CN, 'first')
  t.equal((await served(stage, 'deep.api.shop.test'))?.subject.CN, 'Berth ingress')

  const { certificate, key } = await authority.issue('second', ['DNS:shop.test'])
  await replaceFile(files.key, await readFile(key))
  await replaceFile(files.certificate, await readFile(certificate))
  await eventually('the new certificate', async () => (await served(stage, 'shop.test'))?.subject.CN === 'second')
  t.equal((await served(stage, 'any.shop.test'))?.subject.CN, 'Berth ingress', 'what it names no more has one of the own authority')
  await server.stop()

  await writeFile(files.key, await readFile((await authority.issue('third', ['DNS:shop.test'])).key))
  await t.rejects(stage.server({ certificates: { files: [files] } }), { message: /plugins\.ingress\.config\.certificates\.files\.0\.key: .*is not the key of the certificate/ })
})

t.test('an ACME authority issues behind the scenes by HTTP-01, and is asked again before the end', { skip: skipReason() || noPebble(), timeout: 300_000 }, async (t) => {
  const stage = await setStage(t)
  await stage.instance('web')
  const pebble = await startPebble(t, { httpPort: stage.http, validSeconds: 45 })
  let server = await stage.server(using(pebble))
  await server.ingresses.create({ name: 'site', rules: [to('shop.test')] })
  t.match(viewOf(server), { served: false, reason: 'there is no certificate for shop.test: it is being made', certificates: [{ source: 'acme', issuer: null, not_after: null }] })
  await eventually('a certificate', () => viewOf(server).served, { explain: () => server.log() + pebble.log() })
  t.match(certificateOf(server), { host: 'shop.test', source: 'acme', issuer: /Pebble Intermediate CA/, problem: null, next_attempt_at: null })
  t.match(await stage.ask({ host: 'shop.test', tls: 'shop.test', ca: pebble.root }), { status: 200, body: /"name":"web"/ })
  const modes = await Promise.all([join(stage.paths.certificates, 'shop.test.pem'), ...(await keysBelow(stage.paths.acme))].map(async (path) => (await stat(path)).mode & 0o777))
  t.ok(modes.length >= 2 && modes.every((mode) => mode === 0o600), `keys are for their owner alone: ${modes.map((mode) => mode.toString(8)).join(' ')}`)
  t.same(await readdir(stage.paths.tokens), [], 'no answer to a challenge is left')
  t.equal((await stage.ask({ host: 'shop.test', path: '/.well-known/acme-challenge/unknown' })).status, 404)

  const serial = (await served(stage, 'shop.test'))?.serialNumber
  await eventually('the next certificate', async () => (await served(stage, 'shop.test'))?.serialNumber !== serial, { limitMs: 60_000, explain: () => server.log() })
  await server.crash()
  const before = (await served(stage, 'shop.test'))?.serialNumber
  server = await stage.server(using(pebble))
  t.equal(viewOf(server).served, true, 'the next server goes on with it')
  t.equal((await served(stage, 'shop.test'))?.serialNumber, before)
})

t.test('what was issued to a server that did not live to use it is used by the next one, without asking again', { skip: skipReason() || noPebble(), timeout: 300_000 }, async (t) => {
  const stage = await setStage(t)
  await stage.instance('web')
  const pebble = await startPebble(t, { httpPort: stage.http })
  const server = await stage.server()
  await server.ingresses.create({ name: 'site', rules: [to('shop.test')] })
  const changes = using(pebble)
  const config = { acceptTerms: true, hosts: [], challenge: 'http-01' as const, dnsResolvers: [], waitForRecord: true, timeout: '1m', ...changes.certificates?.acme }
  const lego = new Lego({ config, directory: pebble.directory, folder: stage.paths.acme, challenges: stage.paths.challenges, tokens: stage.paths.tokens, commands: createHostCommands() })
  await lego.obtain('shop.test', AbortSignal.timeout(60_000))
  const left = await lego.pair('shop.test')
  t.ok(left)
  await writeFile(join(stage.paths.acme, 'certificates/shop.test.key'), 'half a k')
  t.equal(await lego.pair('shop.test'), undefined, 'a key that was cut off is none')
  await writeFile(join(stage.paths.acme, 'certificates/shop.test.key'), left?.key ?? '')
  await server.crash()
  await pebble.stop()
  const next = await stage.server(changes)
  t.match(certificateOf(next), { source: 'acme', issuer: /Pebble/, problem: null })
  t.match(await stage.ask({ host: 'shop.test', tls: 'shop.test', ca: pebble.root }), { status: 200 })
})

t.test('a refused certificate is asked for later and later, also by the next server, and the reason is shown', { skip: skipReason() || noPebble(), timeout: 300_000 }, async (t) => {
  const stage = await setStage(t)
  await stage.instance('web')
  // Where nobody answers challenges.
  const pebble = await startPebble(t, { httpPort: 1 })
  const server = await stage.server(using(pebble, { hosts: ['shop.test', '*.shop.test'] }))
  await server.ingresses.create({ name: 'site', rules: [to('shop.test'), to('*.shop.test'), to('shop.local')] })
  const problem = await eventually('a refusal', () => server.ingresses.view(server.ingresses.get('site')).certificates?.find(({ host, next_attempt_at: next, problem }) => host === 'shop.test' && next !== null && problem !== 'the server ended while it was asked for'), { explain: () => server.log() })
  t.match(problem, { source: 'acme', issuer: null, problem: /shop\.test.*error/ })
  const wait = Date.parse(String(problem.next_attempt_at)) - Date.now()
  t.ok(wait > 40_000 && wait <= 60_000, `asked again in ${wait} ms`)
  t.match(viewOf(server), { served: false, reason: /there is no certificate for shop\.test: /, certificates: [{ host: '*.shop.test', source: 'acme', problem: /takes the challenge dns-01/ }, { host: 'shop.local', source: 'own', issuer: /Berth ingress/ }, { host: 'shop.test' }] })
  await server.crash()
  const next = await stage.server(using(pebble, { hosts: ['shop.test', '*.shop.test'] }))
  t.match(viewOf(next).certificates?.[2], { problem: problem.problem, next_attempt_at: problem.next_attempt_at })
})

t.test('by DNS-01 a wildcard gets a certificate, with the provider\'s secrets from a file that nobody else reads', { skip: skipReason() || noPebble(), timeout: 300_000 }, async (t) => {
  const stage = await setStage(t)
  await stage.instance('web')
  const pebble = await startPebble(t, { httpPort: 1 })
  const program = join(stage.world.folder, 'set-record')
  await writeFile(program, `#!/bin/sh
[ "$PROVIDER_TOKEN" = very-secret-token ] || { echo "wrong token" >&2; exit 1; }
case "$1" in
  present) curl --silent --fail --data "{\\"host\\":\\"$2\\",\\"value\\":\\"$3\\"}" ${pebble.dnsControl}/set-txt ;;
  cleanup) curl --silent --fail --data "{\\"host\\":\\"$2\\"}" ${pebble.dnsControl}/clear-txt ;;
esac
`)
  await chmod(program, 0o755)
  const environment = join(stage.world.folder, 'provider.env')
  await writeFile(environment, `# of the provider\nEXEC_PATH=${program}\nPROVIDER_TOKEN=very-secret-token\n`, { mode: 0o644 })
  const changes = using(pebble, { challenge: 'dns-01', dnsProvider: 'exec', dnsResolvers: [pebble.dns], waitForRecord: false, environment })
  const open = await stage.server(changes)
  await open.ingresses.create({ name: 'site', rules: [to('*.shop.test')] })
  await eventually('a refusal', () => certificateOf(open)?.problem?.includes('others may read it'))
  await open.ingresses.delete('site')
  await chmod(environment, 0o600)
  await open.ingresses.create({ name: 'site', rules: [to('*.shop.test')] })
  await eventually('a certificate', () => viewOf(open).served, { explain: () => open.log() + pebble.log() })
  t.match(await stage.ask({ host: 'any.shop.test', tls: 'any.shop.test', ca: pebble.root }), { status: 200 })
  t.notMatch(open.log(), /very-secret-token/)
})

async function keysBelow (folder: string): Promise<string[]> {
  return (await createHostCommands().run('find', [folder, '-name', '*.key'])).stdout.split('\n').filter((path) => path !== '')
}
