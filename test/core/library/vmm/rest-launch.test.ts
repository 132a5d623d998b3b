// A launch of a VMM with a REST API that fails.
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { createRestClient } from '../../../../core/library/vmm/rest-client.ts'
import { bringUp } from '../../../../core/library/vmm/rest-launch.ts'
import { runFolder } from '../../../../core/library/vmm/run-folder.ts'

/** Answers a question, and ends at anything else. */
const PROGRAM = `
require('node:http').createServer(({ method }, answer) => {
  if (method === 'GET') return answer.end()
  console.error('the disk is damaged')
  process.exit(1)
}).listen('api')
`

await t.test('a VMM that ends over a request is quoted, and nothing of it stays', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'berth-vm-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  const [vmm, output, report] = ['vmm', 'output', 'report'].map((name) => join(directory, name)) as [string, string, string]
  for (const file of [vmm, output, report]) await writeFile(file, '')
  const folder = runFolder(directory, 'test', 'api')
  const client = createRestClient({ name: 'the VMM', folder: folder.room, socket: 'api', timeoutMs: 20_000 })
  const spec = { id: 'x', directory, vcpus: 1, memoryBytes: 1, kernel: { path: '', initrd: '', arguments: [] }, disks: [], files: { vmm, output, report } }
  await t.rejects(bringUp(spec, {
    name: 'the VMM', driver: 'test', vmmVersion: '1', command: [process.execPath, '-e', PROGRAM], folder, client, vsock: 'v', links: {}, ping: '/', timeoutMs: 20_000,
    facts: { key: '', shape: {}, vcpus: 1, memoryBytes: 1 },
    fill: async () => { await client.ask('PUT', '/start', {}) },
    makeVm: () => { throw new Error('it does not run') },
    onError: (error) => { throw error }
  }, undefined), { code: 'vm_launch_failed', message: /the VMM ended \(exit code 1\): the disk is damaged/ })
  t.same((await readdir(directory)).sort(), ['output', 'report', 'vmm'])
})
