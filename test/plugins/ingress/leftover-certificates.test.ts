// What lego has left for a host that was not wanted any more when it came, and is wanted again.
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import t, { type Test } from 'tap'
import type { HostCommands } from '../../../core/contracts/services.ts'
import { createJobs } from '../../../core/jobs/queue.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { Acme } from '../../../plugins/ingress/certificates/acme.ts'
import { Certificates } from '../../../plugins/ingress/certificates/certificates.ts'
import { Lego } from '../../../plugins/ingress/certificates/lego.ts'
import { OwnFiles } from '../../../plugins/ingress/certificates/own-files.ts'
import type { IngressRecord } from '../../../plugins/ingress/record.ts'
import { eventually } from '../../helpers/eventually.ts'

const HOST = 'shop.test'
const HOUR_MS = 3_600_000
const REAL = 'https://ca.test/directory'
const STAGING = 'https://staging.test/directory'
const RECORD: IngressRecord = { id: 'a', name: 'a', createdAt: 0, tags: {}, rules: [{ hostname: HOST, port: 443, path: '/', instance: 'web', targetPort: 80, tls: true, redirectHttp: false }] }

interface Place {
  readonly folder: string
  /** what a scripted lego has been asked for, by the text of the authority's directory */
  readonly asked: string[]
  /** how many of those it has written */
  done: number
  /** how long the certificates hold that it gets */
  days: number
  /** what it does before it writes them */
  before: () => Promise<void>
}

async function placeOf (t: Test): Promise<Place> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-certificates-'))
  t.teardown(async () => { await rm(folder, { recursive: true, force: true }) })
  for (const name of ['acme', 'tokens', 'certificates']) await mkdir(join(folder, name))
  return { folder, asked: [], done: 0, days: 90, before: async () => {} }
}

function legoAt ({ folder }: Place, directory: string, commands: HostCommands): Lego {
  const config = { acceptTerms: true, hosts: [], challenge: 'http-01' as const, dnsResolvers: [], waitForRecord: true, timeout: '1m' }
  return new Lego({ config, directory, folder: join(folder, 'acme'), challenges: folder, tokens: join(folder, 'tokens'), commands })
}

/** What lego writes. */
async function write (place: Place, days: number, name: string): ReturnType<HostCommands['run']> {
  const left = leftIn(place)
  await mkdir(left, { recursive: true })
  return await createHostCommands().run('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', String(days), '-subj', `/CN=${name}`, '-keyout', join(left, `${HOST}.key`), '-out', join(left, `${HOST}.crt`)])
}

const leftIn = ({ folder }: Place): string => join(folder, 'acme/certificates')

/** The certificates of a server at this place, whose authority is at `directory`, as it starts. */
async function serverAt (t: Test, place: Place, directory: string, records: readonly IngressRecord[]): Promise<Certificates> {
  const { folder } = place
  const commands: HostCommands = {
    run: async (file, args, options) => {
      if (file !== 'sh') return await createHostCommands().run(file, args, options)
      place.asked.push(args[args.indexOf('--server') + 1] ?? '')
      await place.before()
      const written = await write(place, place.days, String(place.asked.length))
      place.done++
      return written
    }
  }
  const log = pino({ level: 'silent' })
  const acme = new Acme({
    lego: legoAt(place, directory, commands),
    queue: createJobs().queue('certificates', { concurrency: 1 }),
    folder: join(folder, 'acme'), source: `acme ${directory}`, challenge: 'http-01', hosts: [], log,
    onOutcome: () => { certificates.look() }
  })
  const certificates: Certificates = new Certificates({
    folder: join(folder, 'certificates'), openHosts: join(folder, 'open-hosts'), uid: process.getuid?.() ?? 0, issue: async () => { throw new Error('there is an authority') },
    files: new OwnFiles({ files: [], log }), acme, log, onOpenHosts: async () => true
  })
  t.teardown(async () => { await certificates.close() })
  await certificates.keep(records)
  await certificates.start()
  return certificates
}

/** Has lego get one, as a server that is killed before it takes it. */
async function leave (place: Place, directory: string): Promise<void> {
  const commands: HostCommands = { run: async () => await write(place, 1, 'left') }
  await legoAt(place, directory, commands).obtain(HOST, AbortSignal.timeout(60_000))
}

/** The same for other hosts. */
async function copies (place: Place, hosts: readonly string[]): Promise<void> {
  const left = leftIn(place)
  for (const host of hosts) {
    for (const kind of ['key', 'crt']) await copyFile(join(left, `${HOST}.${kind}`), join(left, `${host}.${kind}`))
    await writeFile(join(left, `${host}.directory`), REAL)
  }
}

const issuerOf = (certificates: Certificates): string | undefined => certificates.stateOf(HOST).installed?.issuer

t.test('what was got for the host a moment ago is used without asking again', async (t) => {
  const place = await placeOf(t)
  await leave(place, REAL)
  const certificates = await serverAt(t, place, REAL, [RECORD])
  t.equal(issuerOf(certificates), 'CN=left')
  t.same(place.asked, [])
})

t.test('what is due for renewal is not used: another is asked for', async (t) => {
  const place = await placeOf(t)
  await leave(place, REAL)
  const { now } = Date
  t.teardown(() => { Date.now = now })
  Date.now = () => now() + 20 * HOUR_MS
  const certificates = await serverAt(t, place, REAL, [RECORD])
  t.equal(issuerOf(certificates), undefined)
  await eventually('a certificate', () => issuerOf(certificates))
  t.equal(issuerOf(certificates), 'CN=1')
  t.same(place.asked, [REAL])
})

t.test('what is of another authority is not used: this one is asked', async (t) => {
  const place = await placeOf(t)
  await leave(place, STAGING)
  const certificates = await serverAt(t, place, REAL, [RECORD])
  t.equal(issuerOf(certificates), undefined)
  await eventually('a certificate', () => issuerOf(certificates))
  t.equal(issuerOf(certificates), 'CN=1')
  t.same(place.asked, [REAL])
})

t.test('what is issued for a host that was deleted meanwhile serves it once it is wanted again', async (t) => {
  const place = await placeOf(t)
  const certificates = await serverAt(t, place, REAL, [])
  place.before = async () => { await certificates.keep([]) }
  await certificates.keep([RECORD])
  await eventually('the certificate', () => place.done > 0)
  t.equal(issuerOf(certificates), undefined)
  await certificates.keep([RECORD])
  t.equal(issuerOf(certificates), 'CN=1')
  t.same(place.asked, [REAL])
})

t.test('a host that is deleted and made again gets its certificate back: authorities issue few of them a week', async (t) => {
  const place = await placeOf(t)
  const certificates = await serverAt(t, place, REAL, [RECORD])
  await eventually('a certificate', () => issuerOf(certificates))
  await certificates.keep([])
  t.equal(issuerOf(certificates), undefined)
  t.same(await readdir(join(place.folder, 'certificates')), [], 'nginx has it no more')
  await certificates.keep([RECORD])
  t.equal(issuerOf(certificates), 'CN=1')
  t.same(place.asked, [REAL])
})

t.test('a server that started with another database has lost no certificate', async (t) => {
  const place = await placeOf(t)
  const certificates = await serverAt(t, place, REAL, [RECORD])
  await eventually('a certificate', () => issuerOf(certificates))
  await certificates.close()
  await (await serverAt(t, place, REAL, [])).close()
  const back = await serverAt(t, place, REAL, [RECORD])
  t.equal(issuerOf(back), 'CN=1')
  t.same(place.asked, [REAL])
})

t.test('what is left for a host that is no more goes when it is due for renewal', async (t) => {
  const place = await placeOf(t)
  await leave(place, REAL)
  const certificates = await serverAt(t, place, REAL, [])
  t.not((await readdir(leftIn(place))).length, 0)
  const { now } = Date
  t.teardown(() => { Date.now = now })
  Date.now = () => now() + 20 * HOUR_MS
  await certificates.keep([])
  t.same(await readdir(leftIn(place)), [])
})

t.test('of more hosts that are no more than are kept, those go whose certificates end first', async (t) => {
  const place = await placeOf(t)
  await write(place, 90, 'late')
  await copies(place, Array.from({ length: 256 }, (_, index) => `${index}.test`))
  await leave(place, REAL)
  await serverAt(t, place, REAL, [])
  const left = (await readdir(leftIn(place))).filter((name) => name.endsWith('.crt'))
  t.equal(left.length, 256)
  t.notOk(left.includes(`${HOST}.crt`))
})

t.test('an authority whose certificates are due as they come is asked again later and later, and not at once', async (t) => {
  const place = await placeOf(t)
  place.days = 1
  const { now } = Date
  t.teardown(() => { Date.now = now })
  Date.now = () => now() + 20 * HOUR_MS
  const certificates = await serverAt(t, place, REAL, [RECORD])
  await eventually('a refusal', () => certificates.stateOf(HOST).problem?.includes('by this host\'s clock'))
  t.equal(issuerOf(certificates), undefined)
  await certificates.keep([RECORD])
  t.same(place.asked, [REAL])
  t.match(JSON.parse(await readFile(join(place.folder, 'acme/tries.json'), 'utf8')), { [HOST]: { failures: 1 } })
})

t.test('a refusal while the clock was ahead delays the next request by no more than a pause takes, once the clock is right', async (t) => {
  const place = await placeOf(t)
  const { now } = Date
  t.teardown(() => { Date.now = now })
  Date.now = () => now() + 365 * 24 * HOUR_MS
  place.before = async () => { throw new Error('its certificate has ended') }
  const certificates = await serverAt(t, place, REAL, [RECORD])
  await eventually('a refusal', () => certificates.stateOf(HOST).problem?.includes('its certificate has ended'))
  Date.now = now
  place.before = async () => {}
  await certificates.keep([RECORD])
  await eventually('a certificate', () => issuerOf(certificates))
  t.equal(issuerOf(certificates), 'CN=2')
})
