// What a killed server has left of its probe is ended by the next one.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { eventually } from '../../helpers/eventually.ts'
import { testFolder } from '../../helpers/folder.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { readIdentity } from '../../../core/process/identity.ts'
import { probing } from '../../../core/library/vmm/command.ts'
import { createQemuDriver } from '../../../plugins/hypervisor-qemu/driver.ts'
import { endLeftOver } from '../../../plugins/hypervisor-qemu/end-left-over.ts'

async function workingIn (t: Test, folder: string): Promise<{ readonly ended: Promise<unknown>, readonly isAlive: () => boolean }> {
  await mkdir(folder, { recursive: true })
  const child = spawn('sleep', ['600'], { cwd: folder, detached: true, stdio: 'ignore' })
  t.teardown(() => { child.kill('SIGKILL') })
  await once(child, 'spawn')
  return { ended: once(child, 'exit'), isAlive: () => child.exitCode === null && child.signalCode === null }
}

t.test('VMMs that work in the folder of a probe, or below it, are ended, also when it has been removed; others are left alone', async (t) => {
  const directory = join(testFolder(t), 'imaging-probe')
  const [own, below, removed, other] = [await workingIn(t, directory), await workingIn(t, join(directory, 'qemu')), await workingIn(t, join(directory, 'gone')), await workingIn(t, `${directory}-2`)]
  await rm(join(directory, 'gone'), { recursive: true })
  await endLeftOver(directory)
  await Promise.all([own.ended, below.ended, removed.ended])
  t.ok(other.isAlive())
})

t.test('a driver ends them before anything else, also when it never probes itself', async (t) => {
  const folder = testFolder(t)
  const left = await workingIn(t, join(folder, 'imaging-probe', 'vm'))
  const commands = createHostCommands()
  const nobody = (): never => { throw new Error('nobody boots a guest here') }
  const config = { binary: 'qemu-system-x86_64', accelerator: 'auto', heartbeatInterval: '1s', heartbeatDeadline: '5s', imageTimeout: '10s', probeTimeout: '10s', launchTimeout: '10s', translationCacheMib: 32 } as const
  await createQemuDriver(config, { commands, guest: { system: nobody, link: nobody }, folder, onError: () => {} }).open?.()
  await left.ended
  t.notOk(left.isAlive())
})

t.test('what a probe runs by the host\'s tools ends with the server that is killed', async (t) => {
  const program = `require('node:child_process').spawn('setpriv', ${JSON.stringify(probing('sh', ['-c', 'echo $$; exec sleep 600']))}, { stdio: ['ignore', 'inherit', 'inherit'] })`
  const server = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => { server.kill('SIGKILL') })
  const [line]: Buffer[] = await once(server.stdout, 'data')
  const pid = Number(line?.toString())
  server.kill('SIGKILL')
  t.ok(await eventually('it has ended', async () => readIdentity(pid) === undefined))
})
