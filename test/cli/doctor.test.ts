// What the doctor says of this host, and of servers that are not well.
import { chmod, readFile, writeFile } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Finding } from '../../core/library/host-checks/check.ts'
import { node } from '../../core/library/host-checks/host.ts'
import { installed } from '../../core/library/host-checks/installed.ts'
import { keyFiles } from '../../core/library/host-checks/keys.ts'
import { runFirstProgram } from '../../core/library/host-checks/kvm.ts'
import { ports } from '../../core/library/host-checks/ports.ts'
import { findTool } from '../../core/library/host-checks/tools.ts'
import { unitStates } from '../../core/library/host-checks/units.ts'
import { packageRoot } from '../../core/package-root.ts'
import { neededPackages } from '../../setup/host-packages.ts'
import { testFolder } from '../helpers/folder.ts'
import { berth } from './berth.ts'

const HOST = ['Node.js', 'KVM', 'IOMMU', 'namespaces', 'control groups', 'disk', 'clock', 'ports', 'keys', 'units', ...(await neededPackages()).map(({ name, commands: [command = name] }) => command), 'cloud-hypervisor', 'firecracker']

async function findings (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<{ code: number | null, found: Finding[] }> {
  const { code, out } = await berth(['doctor', '--json', ...args], { env })
  return { code, found: JSON.parse(out) as Finding[] }
}

async function listener (t: Test, answer: (reply: ServerResponse) => void): Promise<number> {
  const server = createServer((_request, reply) => answer(reply))
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  t.teardown(() => { server.close() })
  return (server.address() as AddressInfo).port
}

t.test('it needs no server: each thing of the host is ok, a warning or failed, and what is not ok has a remedy', async (t) => {
  const { found } = await findings(['--host-only'])
  t.strictSame(found.map(({ subject }) => subject), HOST)
  for (const { subject, verdict, found: what, remedy } of found) t.ok(what !== '' && (verdict === 'ok' || remedy !== undefined), `${subject}: ${what}`)
  const absent = await findings([], { BERTH_URL: 'http://127.0.0.1:1' })
  t.equal(absent.code, 1)
  t.match(absent.found.at(-1), { subject: 'server', verdict: 'failed', remedy: /berth serve/ })
})

t.test('a server whose database does not answer is told from one that is not there', async (t) => {
  const port = await listener(t, (reply) => { reply.writeHead(503, { 'content-type': 'application/json' }).end('{"code":"database_unavailable","message":"the database does not answer"}') })
  const { code, found } = await findings([], { BERTH_URL: `http://127.0.0.1:${port}` })
  t.equal(code, 1)
  t.match(found.find(({ subject }) => subject === 'server'), { verdict: 'ok' })
  t.match(found.find(({ subject }) => subject === 'database'), { verdict: 'failed', found: /does not answer/, remedy: String })
  const gateway = await listener(t, (reply) => { reply.writeHead(503).end('<html>') })
  t.match((await findings([], { BERTH_URL: `http://127.0.0.1:${gateway}` })).found.at(-1), { subject: 'server', verdict: 'failed', found: /not one of Berth's/ })
})

t.test('a Node.js that package.json allows is well, and an older one has failed, with the version to install', async (t) => {
  const { engines } = JSON.parse(await readFile(join(packageRoot, 'package.json'), 'utf8')) as { engines: { node: string } }
  const least = engines.node.replace('>=', '')
  for (const version of ['18.20.0', '20.18.9']) t.same(await node(version), { verdict: 'failed', found: `v${version}`, remedy: `install Node.js ${least} or later` })
  for (const file of ['setup/prepare.sh', 'README.md', 'CONTRIBUTING.md']) t.ok((await readFile(join(packageRoot, file), 'utf8')).includes(`Node.js ${least} or later`), file)
  for (const version of [least, `${least}.2`, '22.0.0', '100.0.0']) t.same(await node(version), { verdict: 'ok', found: `v${version}` })
})

t.test('a program that is missing or older than any that was tried is told with its package, and one that a usual host does without is not held against it', async (t) => {
  const path = testFolder(t)
  const tool = { name: 'its-package', proof: 'some-tool', use: 'this or that', oldest: '1.9.3' }
  t.same(await installed(tool, { path }), { verdict: 'warning', found: 'missing: no this or that', remedy: 'apt-get install its-package' })
  t.same(await installed({ ...tool, isOptional: true }, { path }), { verdict: 'ok', found: 'not installed: no this or that' })
  for (const [said, verdict] of [['some-tool 1.9.2', 'warning'], ['some-tool 1.9.3', 'ok'], ['some-tool 1.10', 'ok'], ['some-tool', 'ok']] as const) {
    await writeFile(join(path, 'some-tool'), `#!/bin/sh\n[ "$1" = -V ] && echo '${said}'\n`, { mode: 0o755 })
    t.match(await installed({ ...tool, versionOption: '-V' }, { path }), { verdict, found: said, remedy: verdict === 'ok' ? undefined : /package its-package: the oldest that was tried is 1\.9\.3/ })
  }
  const file = join(path, 'some-tool')
  t.same(await installed({ ...tool, proof: file }, { path }), { verdict: 'ok', found: file })
  t.match(await installed({ ...tool, proof: `${file}.pem` }, { path }), { verdict: 'warning', found: 'missing: no this or that' })
})

t.test('a port that another program has is told, and one of a server of Berth\'s is not held against it', async (t) => {
  const port = await listener(t, (reply) => { reply.end() })
  t.match(await ports(async () => await Promise.resolve(false), [[port, 'the API']]), { verdict: 'warning', found: `taken: ${port} (the API)`, remedy: /server\.listen/ })
  t.match(await ports(async (asked) => await Promise.resolve(asked === port), [[port, 'the API']]), { verdict: 'ok' })
  t.match(await ports(async () => await Promise.resolve(false), [[1, 'nothing']]), { verdict: 'ok', found: 'free: 1 (nothing)' })
})

t.test('a file of keys that others may read has failed, and the doctor goes on', async (t) => {
  const file = join(testFolder(t, { 'contexts.json': '{"contexts":{}}' }), 'contexts.json')
  await chmod(file, 0o600)
  t.match((await keyFiles([file])).found, `${file} (0600)`)
  await chmod(file, 0o644)
  const { code, found } = await findings([], { BERTH_CONTEXTS: file })
  t.equal(code, 1)
  t.match(found.find(({ subject }) => subject === 'keys'), { verdict: 'failed', found: `${file} (0644)`, remedy: `chmod 600 ${file}` })
  t.match(found.at(-1), { subject: 'server', verdict: 'failed', remedy: `chmod 600 ${file}` })
})

t.test('units that are installed and do not run are told', async (t) => {
  const shown = (server: string, proxy: string): string => `Id=berth.service\nLoadState=loaded\nActiveState=${server}\n\nId=berth-network.service\nLoadState=loaded\nActiveState=active\n\nId=berth-egress.service\nLoadState=loaded\nActiveState=${proxy}\n`
  t.match(unitStates(shown('active', 'inactive')), { verdict: 'ok' }, 'its sockets start the proxy')
  t.match(unitStates(shown('inactive', 'active')), { verdict: 'failed', remedy: /systemctl status berth\.service/ })
  t.match(unitStates(shown('active', 'failed')), { verdict: 'failed', remedy: /berth-egress\.service/ })
  t.match(unitStates('Id=berth.service\nLoadState=not-found\nActiveState=inactive\n'), { verdict: 'ok', found: 'not installed as a service' })
})

t.test('the program that KVM is tried with ends a VM as it should', async (t) => {
  const qemu = await findTool('qemu-system-x86_64', { path: process.env['PATH'] ?? '' })
  if (qemu === undefined) return t.pass('there is no QEMU')
  t.equal((await runFirstProgram(qemu, 'tcg')).code, 33)
})
