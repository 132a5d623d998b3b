// Cases of probe and launch.
import { access, readFile, writeFile } from 'node:fs/promises'
import type { Test } from 'tap'
import { processesIn } from '../../../setup/server/leftovers.ts'
import { readIdentity } from '../../../core/process/identity.ts'
import { contents, converse, launch, makeSpec, type HypervisorFixture } from './fixture.ts'
import { vmmOf, withoutProcess } from './vmm.ts'

export async function launchingCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  await t.test('probe says whether the host can run VMs, and how, and says the same again', async (t) => {
    const driver = await fixture.makeDriver()
    const probe = await driver.probe()
    t.equal(probe.supported, true, probe.reason ?? 'supported')
    t.match(probe.version, /^\d+\.\d+/)
    t.ok(probe.acceleration)
    if (probe.acceleration === 'tcg') t.match(probe.reason, /\w+ \w+/, 'emulation has a reason')
    t.same(await driver.probe(), probe)
  })

  await t.test('launch gives a running VM with a handle of plain JSON', async (t) => {
    const driver = await fixture.makeDriver()
    const spec = await makeSpec(t, fixture)
    const vm = await launch(t, driver, spec)
    t.same(vm.state, { status: 'running' })
    t.same(JSON.parse(JSON.stringify(vm.handle)), vm.handle)
    t.equal(vm.handle.driver, driver.name)
    t.equal(vm.handle.directory, spec.directory)
    t.equal(vm.handle.vmmVersion, (await driver.probe()).version)
    t.ok(vmmOf(fixture).isAlive(vm.handle))
    if (withoutProcess(fixture) === false) t.equal(readIdentity(vm.handle.pid)?.startTicks, vm.handle.startTicks)
  })

  await t.test('a folder whose path is longer than a socket\'s may be works', async (t) => {
    const spec = await makeSpec(t, fixture, { deep: true })
    t.ok(spec.directory.length > 107)
    const vm = await launch(t, await fixture.makeDriver(), spec)
    const link = await converse(t, fixture, vm)
    t.equal((await link.hello).phase, 'waiting')
  })

  await t.test('a launch that fails says why and leaves nothing', async (t) => {
    const driver = await fixture.makeDriver()
    const spec = await makeSpec(t, fixture)
    const before = await contents(spec.directory)
    await t.rejects(driver.launch({ ...spec, kernel: { ...spec.kernel, path: '/nonexistent/vmlinux' } }), /vmlinux/)
    t.same(await contents(spec.directory), before)
    t.same(await processesIn(spec.directory), [])
    await t.resolves(launch(t, driver, spec), 'the same folder can be used afterwards')
  })

  await t.test('an aborted launch leaves nothing', async (t) => {
    const driver = await fixture.makeDriver()
    await driver.probe()
    const spec = await makeSpec(t, fixture)
    const before = await contents(spec.directory)
    const why = new Error('no longer wanted')
    await t.rejects(driver.launch(spec, AbortSignal.abort(why)), why)
    const controller = new AbortController()
    const launching = driver.launch(spec, controller.signal)
    // As soon as its process exists.
    const watch = setInterval(() => { processesIn(spec.directory).then((found) => { if (found.length > 0) controller.abort(why) }, () => {}) }, 1)
    t.teardown(() => clearInterval(watch))
    await launching.then((vm) => vm.kill(), (error: unknown) => t.equal(error, why))
    clearInterval(watch)
    t.same(await processesIn(spec.directory), [])
    t.same(await contents(spec.directory), before)
  })

  await t.test('what stood in the files stays, and the VM appends', async (t) => {
    const spec = await makeSpec(t, fixture)
    await writeFile(spec.files.output, 'from the last run\n')
    const vm = await launch(t, await fixture.makeDriver(), spec)
    await vm.kill()
    await access(spec.files.report)
    t.match(await readFile(spec.files.output, 'utf8'), /^from the last run\n/)
  })
}
