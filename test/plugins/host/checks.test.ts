// What a server finds of its host.
import { chmod, mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { check } from '../../../core/library/host-checks/check.ts'
import { hostFindings } from '../../../core/library/host-checks/host.ts'
import type { HostChecks } from '../../../plugins/host/schemas.ts'
import { temporaryFolder } from '../../core/bare-app.ts'
import { startHost } from './app.ts'

t.test('the server tells what it finds of its host, database and plugins, with what to do about each fault', async (t) => {
  const { get, dataDir } = await startHost(t)
  const [one, other] = await Promise.all([get<HostChecks>('/host/checks'), get<HostChecks>('/host/checks')])
  t.equal(one.status, 200)
  t.same(other.body, one.body, 'requests at the same time share one look')
  t.same((await get<HostChecks>('/host/checks')).body, one.body, 'as do those shortly after it')
  const { checks } = one.body
  t.same(checks.slice(0, 12).map(({ subject }) => subject), ['Node.js', 'KVM', 'IOMMU', 'namespaces', 'control groups', 'disk', 'clock', 'room', 'database', 'plugins', 'keys', 'units'])
  for (const { subject, verdict, found, remedy } of checks) t.ok(found !== '' && (verdict === 'ok') === (remedy === undefined), `${subject}: ${verdict}: ${found}`)
  const of = (wanted: string): string | undefined => checks.find(({ subject }) => subject === wanted)?.found
  t.match(of('disk'), dataDir, 'the disk is that of the data folder')
  t.match(of('keys'), `${dataDir}/keys/admin.key (0600)`)
  t.equal(of('database'), 'answers')
  t.same(await readdir(join(dataDir, 'host')), [], 'nothing is left')
})

t.test('after some seconds the host is looked at anew, and a fault that has come shows', async (t) => {
  const { get, dataDir } = await startHost(t, { config: { checksKept: '1ms' } })
  const verdict = async (): Promise<string | undefined> => (await get<HostChecks>('/host/checks')).body.checks.find(({ subject }) => subject === 'keys')?.verdict
  t.equal(await verdict(), 'ok')
  await chmod(join(dataDir, 'keys/admin.key'), 0o644)
  t.equal(await verdict(), 'failed')
})

t.test('a check that hangs or fails costs only itself', async (t) => {
  const hanging = check('hanging', async () => await new Promise(() => {}), 50)
  const failing = check('failing', async () => { throw new Error('EIO: the disk\nand more') })
  t.match(await Promise.all([hanging, failing]), [
    { subject: 'hanging', verdict: 'warning', found: 'could not be looked at: it did not end within 0.05 s', remedy: String },
    { subject: 'failing', verdict: 'warning', found: 'could not be looked at: EIO: the disk', remedy: String }
  ])
  const folder = await temporaryFolder(t)
  await mkdir(join(folder, 'bin'))
  await writeFile(join(folder, 'bin/skopeo'), '#!/bin/sh\nexec sleep 600\n', { mode: 0o755 })
  const began = performance.now()
  const findings = await hostFindings({ path: `${join(folder, 'bin')}:${process.env['PATH'] ?? ''}`, dataFolder: folder, scratch: folder, keyFiles: [] })
  t.match(findings.find(({ subject }) => subject === 'skopeo'), { verdict: 'warning', found: /did not end within 5 s/, remedy: String })
  t.equal(findings.find(({ subject }) => subject === 'disk')?.found.includes(folder), true)
  t.ok(performance.now() - began < 30_000)
})
