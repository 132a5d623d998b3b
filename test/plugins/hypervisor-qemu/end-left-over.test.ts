// What a killed server has left of its probe is ended by the next one.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { endLeftOver } from '../../../plugins/hypervisor-qemu/end-left-over.ts'

async function workingIn (t: Test, folder: string): Promise<{ readonly ended: Promise<unknown>, readonly isAlive: () => boolean }> {
  await mkdir(folder, { recursive: true })
  const child = spawn('sleep', ['600'], { cwd: folder, detached: true, stdio: 'ignore' })
  t.teardown(() => { child.kill('SIGKILL') })
  await once(child, 'spawn')
  return { ended: once(child, 'exit'), isAlive: () => child.exitCode === null && child.signalCode === null }
}

t.test('VMMs that work in the folder of a probe, or below it, are ended, also when it has been removed; others are left alone', async (t) => {
  const directory = join(t.testdir(), 'imaging-probe')
  const [own, below, removed, other] = [await workingIn(t, directory), await workingIn(t, join(directory, 'qemu')), await workingIn(t, join(directory, 'gone')), await workingIn(t, `${directory}-2`)]
  await rm(join(directory, 'gone'), { recursive: true })
  await endLeftOver(directory)
  await Promise.all([own.ended, below.ended, removed.ended])
  t.ok(other.isAlive())
})
