// What steps of a mediated build are given, by the script that stands in the runtime's place.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createHostCommands } from '../../../../core/process/run.ts'
import { stepRuntime } from '../../../../plugins/builds/builder-vm/step-runtime.ts'
import { stepTrust } from '../../../../plugins/builds/builder-vm/step-trust.ts'
import { testFolder } from '../../../helpers/folder.ts'

const VARIABLES = { SSL_CERT_FILE: '/etc/ssl/certs/berth-ca-bundle.crt', PIP_CERT: '/etc/ssl/certs/berth-ca-bundle.crt', NODE_EXTRA_CA_CERTS: '/usr/local/share/ca-certificates/berth-egress.crt' }
const commands = createHostCommands()

/** Calls the script as buildah does; what the real runtime, here a program that prints, was called with, and what became of the container's description. */
async function call (t: Test, argv: (bundle: string) => readonly string[], process: object): Promise<{ stdout: string, process: { args: string[], env: string[] } }> {
  const folder = testFolder(t, { bin: {}, bundle: {} })
  await writeFile(join(folder, 'bin/crun'), '#!/bin/sh\necho "$@"\n', { mode: 0o755 })
  await writeFile(join(folder, 'bundle/config.json'), JSON.stringify({ ociVersion: '1.0.2', process, root: { env: 'not this' } }))
  const script = join(folder, 'runtime')
  await writeFile(script, stepRuntime(stepTrust(VARIABLES).beforeCreate), { mode: 0o755 })
  await mkdir(join(folder, 'bundle'), { recursive: true })
  const { stdout } = await commands.run(script, argv(join(folder, 'bundle')), { env: { PATH: `${join(folder, 'bin')}:/usr/bin:/bin` } })
  return { stdout, process: JSON.parse(await readFile(join(folder, 'bundle/config.json'), 'utf8')).process }
}

t.test('files appear in /dev, each once', async (t) => {
  t.same(stepTrust(VARIABLES).volumes, ['/etc/ssl/certs/berth-ca-bundle.crt:/dev/berth-ca-bundle.crt', '/usr/local/share/ca-certificates/berth-egress.crt:/dev/berth-egress.crt'])
})

t.test('when a container is created its program gets the variables, before its image\'s own, and nothing else changes', async (t) => {
  const args = ['/bin/sh', '-c', 'echo \'"env":["in the arguments"]\'']
  const { stdout, process } = await call(t, (bundle) => ['create', '--bundle', bundle, '--pid-file', '/x', 'id'], { args, env: ['PATH=/bin', 'SSL_CERT_FILE=/own'] })
  t.match(stdout, /^create --bundle \S+ --pid-file \/x id\n$/)
  t.same(process, { args, env: ['SSL_CERT_FILE=/dev/berth-ca-bundle.crt', 'PIP_CERT=/dev/berth-ca-bundle.crt', 'NODE_EXTRA_CA_CERTS=/dev/berth-egress.crt', 'PATH=/bin', 'SSL_CERT_FILE=/own'] })
})

t.test('other calls go to the runtime as they are', async (t) => {
  const { stdout, process } = await call(t, () => ['start', 'create-me'], { args: [], env: ['A=1'] })
  t.equal(stdout, 'start create-me\n')
  t.same(process, { args: [], env: ['A=1'] })
})

t.test('a variable that is no plain path is left out', async (t) => {
  t.same(stepTrust({ A: '/with a space', B$: '/b', C: '/c#&' }).volumes, [])
})
