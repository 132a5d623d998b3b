// Cases of taking a VM over: after a server's orderly end, after its crash, and when there is nothing left to take.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import type { VmHandle, VmSpec } from '../../../core/library/hypervisor.ts'
import { isAlive, readIdentity } from '../../../core/process/identity.ts'
import { contents, converse, launch, makeSpec, reaches, startClock, type HypervisorFixture } from './fixture.ts'
import { waitingVm } from './image-fixture.ts'
import { vmmOf, withoutProcess } from './vmm.ts'

export async function attachingCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  await t.test('a released VM runs on and can be taken over', async (t) => {
    const { vm: first } = await waitingVm(t, fixture, await fixture.makeDriver(), await makeSpec(t, fixture))
    const { bootId } = await (await converse(t, fixture, first)).hello
    first.release()
    t.ok(vmmOf(fixture).isAlive(first.handle))
    const second = await (await fixture.makeDriver()).attach(first.handle)
    t.same(second.state, { status: 'running' })
    t.equal((await (await converse(t, fixture, second)).hello).bootId, bootId)
    await second.kill()
    t.notOk(vmmOf(fixture).isAlive(first.handle))
  })

  const skip = withoutProcess(fixture)
  await t.test('a VM outlives a server that is killed, and the next one takes it over', { skip }, async (t) => {
    const handle = await launchAndDie(fixture, await makeSpec(t, fixture))
    const vm = await (await fixture.makeDriver()).attach(handle)
    t.teardown(() => vm.kill())
    t.same(vm.state, { status: 'running' })
    t.equal((await (await converse(t, fixture, vm)).hello).phase, 'waiting')
    process.kill(handle.pid, 'SIGKILL')
    await reaches(vm, 'gone')
  })

  await t.test('a VM that vanished meanwhile is gone, and what it left is removed', { skip }, async (t) => {
    const spec = await makeSpec(t, fixture)
    const before = await contents(spec.directory)
    const handle = await launchAndDie(fixture, spec)
    process.kill(handle.pid, 'SIGKILL')
    while (isAlive(handle)) await new Promise(setImmediate)
    const vm = await (await fixture.makeDriver()).attach(handle)
    t.same(vm.state, { status: 'gone' })
    await vm.wait()
    await vm.kill()
    t.same(await contents(spec.directory), before)
  })

  await t.test('a process that was given the pid of an old VM is left alone', { skip }, async (t) => {
    const driver = await fixture.makeDriver()
    const dead = await launch(t, driver, await makeSpec(t, fixture))
    await dead.kill()
    const stranger = spawn('sleep', ['60'], { stdio: 'ignore' })
    t.teardown(() => stranger.kill('SIGKILL'))
    await once(stranger, 'spawn')
    const vm = await driver.attach({ ...dead.handle, pid: stranger.pid ?? 0 })
    t.equal(vm.state.status, 'gone')
    await vm.kill()
    t.ok(readIdentity(stranger.pid ?? 0))
    const otherBoot = await driver.attach({ ...dead.handle, pid: stranger.pid ?? 0, startTicks: readIdentity(stranger.pid ?? 0)?.startTicks ?? '', bootId: 'another boot' })
    t.equal(otherBoot.state.status, 'gone')
  })

  await t.test('a hung VM is taken over as hung, and comes back', async (t) => {
    const first = await launch(t, await fixture.makeDriver(), await makeSpec(t, fixture))
    first.release()
    vmmOf(fixture).stop(first.handle)
    const elapsed = startClock()
    const second = await (await fixture.makeDriver()).attach(first.handle)
    t.ok(elapsed() < 3000)
    t.equal(second.state.status, 'hung')
    vmmOf(fixture).goOn(first.handle)
    t.ok(await reaches(second, 'running') <= 2000)
    await second.kill()
  })
}

/** Launches a VM from a process that is then killed as a server might be. */
async function launchAndDie (fixture: HypervisorFixture, spec: VmSpec): Promise<VmHandle> {
  const program = fileURLToPath(new URL('launch-and-die.js', import.meta.url))
  const child = spawn(process.execPath, [program, fixture.module.href, JSON.stringify(spec)], { stdio: ['ignore', 'pipe', 'inherit'] })
  let printed = ''
  child.stdout.on('data', (chunk: Buffer) => { printed += chunk.toString() })
  const [, signal] = await once(child, 'close')
  if (signal !== 'SIGKILL') throw new Error(`the server in between ended with ${String(signal)}: ${printed}`)
  return JSON.parse(printed)
}
