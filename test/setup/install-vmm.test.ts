// `npm run install-vmm`: what it fetches is checked, what it is given is named, and nothing is installed that is not what was published.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { machine, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { createHostCommands } from '../../core/process/run.ts'

const PROGRAM = fileURLToPath(new URL('../../setup/vmm/main.js', import.meta.url))
const SCRIPT = (name: string, version: string): string => `#!/bin/sh\necho '${name} v${version}'\n`
const sha256 = (content: Buffer | string): string => createHash('sha256').update(content).digest('hex')

async function install (...args: string[]): Promise<{ code: unknown, said: string }> {
  const child = spawn(process.execPath, [PROGRAM, ...args])
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => { said += chunk.toString() })
  const [code]: unknown[] = await once(child, 'close')
  return { code, said }
}

async function folderFor (t: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-vmm-test-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** Firecracker's archive, as its releases have it. */
async function archive (folder: string): Promise<string> {
  const top = `release-v1.16.1-${machine()}`
  await mkdir(join(folder, top))
  for (const name of ['firecracker', 'jailer']) await writeFile(join(folder, top, `${name}-v1.16.1-${machine()}`), SCRIPT(name === 'jailer' ? 'Jailer' : 'Firecracker', '1.16.1'), { mode: 0o755 })
  const file = join(folder, 'firecracker.tgz')
  await createHostCommands().run('tar', ['-czf', file, '-C', folder, top])
  return file
}

function portOf (server: Server): number {
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

/** A host of releases: one file, and the checksum that it publishes. */
async function releases (t: Test, repository: string, tag: string, name: string, content: Buffer | string, digest: string | undefined): Promise<string> {
  const server = createServer((request, response) => {
    if (request.url === '/file') response.end(content)
    else if (request.url === `/repos/${repository}/releases/tags/${tag}`) response.end(JSON.stringify({ assets: [{ name: 'other' }, { name, browser_download_url: `http://127.0.0.1:${portOf(server)}/file`, ...digest === undefined ? {} : { digest } }] }))
    else response.writeHead(404).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => { server.close() })
  return `http://127.0.0.1:${portOf(server)}`
}

t.test('a release is fetched, checked against the checksum beside it, and installed', async (t) => {
  const folder = await folderFor(t)
  const to = join(folder, 'bin')
  const content = await readFile(await archive(folder))
  const api = await releases(t, 'firecracker-microvm/firecracker', 'v1.16.1', `firecracker-v1.16.1-${machine()}.tgz`, content, `sha256:${sha256(content)}`)
  const { code, said } = await install('firecracker', '--api', api, '--to', to)
  t.equal(code, 0, said)
  t.match(said, new RegExp(`published beside it: ${sha256(content)}`))
  t.same((await readdir(to)).sort(), ['firecracker', 'jailer'])
  t.match((await createHostCommands().run(join(to, 'firecracker'), ['--version'])).stdout, /1\.16\.1/)
})

t.test('one with another checksum, or with none, installs nothing', async (t) => {
  const folder = await folderFor(t)
  const name = machine() === 'x86_64' ? 'cloud-hypervisor-static' : `cloud-hypervisor-static-${machine()}`
  for (const [digest, why] of [[`sha256:${'0'.repeat(64)}`, /is published beside it; nothing was installed/], [undefined, /no checksum/]] as const) {
    const api = await releases(t, 'cloud-hypervisor/cloud-hypervisor', 'v53.0', name, SCRIPT('cloud-hypervisor', '53.0'), digest)
    const { code, said } = await install('cloud-hypervisor', '--api', api, '--to', join(folder, 'bin'))
    t.equal(code, 1)
    t.match(said, why)
  }
  t.same(await readdir(folder), [])
})

t.test('a file is taken, and what it was checked against is said', async (t) => {
  const folder = await folderFor(t)
  const to = join(folder, 'bin')
  const file = join(folder, 'ch')
  await writeFile(file, SCRIPT('cloud-hypervisor', '53.0'))
  const unchecked = await install('cloud-hypervisor', '--from', file, '--to', to)
  t.equal(unchecked.code, 0, unchecked.said)
  t.match(unchecked.said, /checked against nothing/)
  t.same(await readdir(to), ['cloud-hypervisor'])
  await writeFile(`${file}.sha256.txt`, `${sha256(await readFile(file))}  ch\n`)
  t.match((await install('cloud-hypervisor', '--from', file, '--to', to)).said, /whose checksum is the one in/)
  await writeFile(`${file}.sha256.txt`, `${'0'.repeat(64)}  ch\n`)
  t.match(await install('cloud-hypervisor', '--from', file, '--to', join(folder, 'other')), { code: 1, said: /nothing was installed/ })
  t.notOk((await readdir(folder)).includes('other'))
  await writeFile(file, SCRIPT('cloud-hypervisor', '52.0'))
  await rm(`${file}.sha256.txt`)
  t.match((await install('cloud-hypervisor', '--from', file, '--to', to)).said, /v52\.0", and 53\.0 is what Berth was made for/)
})

t.test('an unknown name, and a host that cannot be reached, are one line', async (t) => {
  t.match(await install('xen'), { code: 1, said: /^install-vmm: name one of firecracker, cloud-hypervisor\n$/ })
  t.match(await install('firecracker', '--api', 'http://127.0.0.1:1'), { code: 1, said: /^install-vmm: .*cannot be fetched.*--from\n$/ })
})
