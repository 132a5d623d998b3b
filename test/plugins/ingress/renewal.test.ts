// When a certificate is renewed.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pino from 'pino'
import t from 'tap'
import { Certificates } from '../../../plugins/ingress/certificates/certificates.ts'
import { dueAt, installedOf, textOf } from '../../../plugins/ingress/certificates/installed.ts'
import { OwnFiles } from '../../../plugins/ingress/certificates/own-files.ts'
import { makeAuthority } from '../../core/tls/certificates.ts'
import { eventually } from '../../helpers/eventually.ts'

t.test('a certificate that becomes due while all are looked at is renewed at the next look, a moment later', async (t) => {
  const folder = t.testdir({ certificates: {} })
  const issued = await (await makeAuthority(folder)).issue('first', ['DNS:shop.test'])
  const pair = { certificate: await readFile(issued.certificate, 'utf8'), key: await readFile(issued.key, 'utf8') }
  const text = textOf('own', pair)
  await writeFile(join(folder, 'certificates/shop.test.pem'), text)
  const installed = installedOf(text)
  if (installed === undefined) throw new Error('no certificate')

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
      return pair
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
  await certificates.keep([{ id: 'a', name: 'a', createdAt: 0, tags: {}, rules: [{ hostname: 'shop.test', port: 443, path: '/', instance: 'web', targetPort: 80, tls: true, redirectHttp: false }] }])
  t.same(asked, [], 'it was not due yet')
  t.ok(now > dueAt(installed), 'it is now')
  await eventually('the renewal', () => asked.includes('shop.test'))
})
