// Completion in the shells themselves.
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { testFolder } from '../helpers/folder.ts'
import { berth, clientEnvironment } from './berth.ts'
import { onPath } from './on-path.ts'

const execute = promisify(execFile)

/** What bash would offer for a line. */
async function offered (line: string, folder: string, env: Readonly<Record<string, string>> = {}): Promise<string[]> {
  const script = `set -u; eval "$(berth completion bash)"; COMP_LINE=$1 COMP_POINT=${'$'}{#1}; _berth; printf '%s\\n' "${'$'}{COMPREPLY[@]}"`
  const { stdout } = await execute('/bin/bash', ['-c', script, 'bash', line], { cwd: folder, env: { ...clientEnvironment(), ...env, PATH: `${folder}:${process.env['PATH'] ?? ''}` } })
  return stdout.split('\n').filter((word) => word !== '')
}

t.test('bash offers commands, options, values, and names that the server has', async (t) => {
  const folder = await onPath(t)
  const server = createServer((_request, reply) => { reply.end(JSON.stringify([{ id: 'abc', name: 'web' }, { id: 'def', name: 'worker' }, { id: 'ghi', name: 'db' }])) })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  t.teardown(() => { server.close() })
  const env = { BERTH_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
  t.strictSame(await offered('berth sna', folder), ['snapshot'])
  t.ok((await offered('berth snapshot ', folder)).includes('create'))
  t.ok((await offered('berth ps --sta', folder)).includes('--state'))
  t.strictSame(await offered('berth exec w', folder, env), ['web', 'worker'])
})

t.test('what stands on the line is not run', async (t) => {
  const folder = await onPath(t)
  await offered('berth exec $(touch evil) `touch evil` ', folder, { BERTH_URL: 'http://127.0.0.1:1' })
  t.notOk(existsSync(join(folder, 'evil')))
})

for (const [shell, check] of [['zsh', ['-n']], ['fish', ['--no-execute']]] as const) {
  const file = ['/bin', '/usr/bin'].map((folder) => join(folder, shell)).find(existsSync)
  t.test(`${shell} takes its script`, { skip: file === undefined && `${shell} is not installed` }, async (t) => {
    const script = join(testFolder(t), 'script')
    await writeFile(script, (await berth(['completion', shell])).out)
    t.equal((await execute(file ?? '', [...check, script])).stderr, '')
  })
}
