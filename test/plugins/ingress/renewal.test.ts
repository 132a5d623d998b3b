// When a certificate is renewed.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pino from 'pino'
import t, { type Test } from 'tap'
import type { Pair } from '../../../plugins/ingress/certificates/authority.ts'
import { Certificates } from '../../../plugins/ingress/certificates/certificates.ts'
import { dueAt, installedOf, textOf, type Installed } from '../../../plugins/ingress/certificates/installed.ts'
import { OwnFiles } from '../../../plugins/ingress/certificates/own-files.ts'
import type { IngressRecord } from '../../../plugins/ingress/record.ts'
import { makeAuthority } from '../../core/tls/certificates.ts'
import { eventually } from '../../helpers/eventually.ts'
import { testFolder } from '../../helpers/folder.ts'

const RECORD: IngressRecord = { id: 'a', name: 'a', createdAt: 0, tags: {}, rules: [{ hostname: 'shop.test', port: 443, path: '/', instance: 'web', targetPort: 80, tls: true, redirectHttp: false }] }

/** A folder with a certificate of the own authority for shop.test, and another that is issued when one is asked for. */
async function placeOf (t: Test): Promise<{ folder: string, installed: Installed, next: Pair }> {
  const folder = testFolder(t, { certificates: {} })
  const authority = await makeAuthority(folder)
  const pair = async (name: string): Promise<Pair> => {
    const { certificate, key } = await authority.issue(name, ['DNS:shop.test'])
    return { certificate: await readFile(certificate, 'utf8'), key: await readFile(key, 'utf8') }
  }
  const text = textOf('own', await pair('first'))
  await writeFile(join(folder, 'certificates/shop.test.pem'), text)
  const installed = installedOf(text)
  if (installed === undefined) throw new Error('no certificate')
  return { folder, installed, next: await pair('next') }
}

t.test('a certificate that becomes due while all are looked at is renewed at the next look, a moment later', async (t) => {
  const { folder, installed, next } = await placeOf(t)
  let now = Math.floor(dueAt(installed)) - 1
  const { now: realNow } = Date
  t.teardown(() => { Date.now = realNow })
  Date.now = () => now
  const asked: string[] = []
  const log = pino({ level: 'silent' })
  const certificates = new Certificates({
    folder: join(folder, 'certificates'),
    openHosts: join(folder, 'open-hosts'),
    uid: process.getuid?.() ?? 0,
    issue: async (host) => {
      asked.push(host)
      return next
    },
    files: new OwnFiles({ files: [], log }),
    acme: undefined,
    log,
    // Between the look at each certificate and the choice of the next time.
    onOpenHosts: async () => {
      now += 3
      return true
    }
  })
  t.teardown(async () => { await certificates.close() })
  await certificates.keep([RECORD])
  t.same(asked, [], 'it was not due yet')
  t.ok(now > dueAt(installed), 'it is now')
  await eventually('the renewal', () => asked.includes('shop.test'))
})

t.test('a certificate that was made while the clock was ahead is made anew once it is right, and until then the ingress says so', async (t) => {
  const { folder, installed, next } = await placeOf(t)
  const { now: realNow } = Date
  t.teardown(() => { Date.now = realNow })
  let canIssue = false
  const log = pino({ level: 'silent' })
  const certificates = new Certificates({
    folder: join(folder, 'certificates'),
    openHosts: join(folder, 'open-hosts'),
    uid: process.getuid?.() ?? 0,
    issue: async () => {
      if (!canIssue) throw new Error('not now')
      return next
    },
    files: new OwnFiles({ files: [], log }),
    acme: undefined,
    log,
    onOpenHosts: async () => true
  })
  t.teardown(async () => { await certificates.close() })
  Date.now = () => installed.startsAt - 30 * 24 * 3_600_000
  await certificates.keep([RECORD])
  t.equal(certificates.problemOf('shop.test'), 'the certificate for shop.test is not valid yet by this host\'s clock: not now')
  canIssue = true
  await certificates.keep([RECORD])
  t.equal(certificates.stateOf('shop.test').installed?.text, textOf('own', next))
  Date.now = realNow
  t.equal(certificates.problemOf('shop.test'), undefined)
})
