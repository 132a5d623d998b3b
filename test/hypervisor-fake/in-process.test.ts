// The fake driver without processes keeps the contract, as far as that is not about processes; scripted hosts (test/plugins/instances/scripted.ts) are made of it.
import { readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import type { VmDisk, VmHandle, VmSpec } from '../../core/library/hypervisor.ts'
import { hypervisorConformance, type HypervisorFixture } from '../contracts/hypervisor.ts'
import { contents, launch, makeSpec } from '../contracts/hypervisor/fixture.ts'
import { capturedShared, facetOf, imagingOf, sharedSpec } from '../contracts/hypervisor/image-fixture.ts'
import { guest, makeMachine } from './fixture.ts'
import { createInProcessDriver } from './in-process/driver.ts'
import { GuestMachine } from './in-process/guest-machine.ts'
import type { DriverStep, Host } from './in-process/host.ts'
import { VERSION } from './image.ts'

/** A host that can do everything, and fails the steps that a case names. */
class WholeHost implements Host<GuestMachine> {
  readonly name = 'fake'
  readonly features = ['removable-disks'] as const
  readonly vmmVersion = VERSION
  readonly vms: GuestMachine[] = []
  readonly replacesDisks = true
  readonly hasBalloons = true
  readonly makesImages = true
  readonly imagingRefusal = undefined
  readonly hasWholeMemory = true
  servers = 0
  onStep: ((step: DriverStep) => void) | undefined

  makeVm (spec: VmSpec, handle: VmHandle): GuestMachine { return new GuestMachine(spec, handle) }
  async step (step: DriverStep): Promise<void> { this.onStep?.(step) }

  /** the VM behind a handle */
  of ({ pid }: VmHandle): GuestMachine {
    const vm = this.vms.find(({ handle }) => handle.pid === pid)
    if (vm === undefined) throw new Error(`there is no VM ${pid}`)
    return vm
  }
}

function fixtureOf (host: WholeHost): HypervisorFixture {
  return {
    module: new URL('in-process.test.js', import.meta.url),
    makeDriver: async () => createInProcessDriver(host),
    isDouble: true,
    guest,
    vmm: {
      isAlive: (handle) => host.of(handle).state.status !== 'gone',
      holds: async (handle, path) => [...host.of(handle).disks.values()].includes(path),
      crash: (handle) => { host.of(handle).set({ status: 'gone' }) },
      stop: (handle) => { host.of(handle).set({ status: 'hung', reason: 'no answer' }) },
      goOn: (handle) => { host.of(handle).set({ status: 'running' }) }
    },
    makeMachine
  }
}

await t.test('conformance', (t) => hypervisorConformance(t, fixtureOf(new WholeHost())))

const failing = (host: WholeHost, failed: DriverStep): void => {
  host.onStep = (step) => { if (step === failed) throw new Error(`no ${step}`) }
}

await t.test('a capture that fails at its end leaves no file, and the VM as it was', async (t) => {
  const host = new WholeHost()
  const fixture = fixtureOf(host)
  const spec = await makeSpec(t, fixture)
  const vm = await launch(t, await fixture.makeDriver(), spec)
  const before = await contents(spec.directory)
  const files = { statePath: join(spec.directory, 'state'), memoryPath: join(spec.directory, 'copied') }
  failing(host, 'captured')
  await t.rejects(facetOf(vm).capture(files), /no captured/)
  t.same(vm.state, { status: 'running' })
  await facetOf(vm).pause()
  await t.rejects(facetOf(vm).capture(files), /no captured/)
  t.same(vm.state, { status: 'paused' })
  t.same(await contents(spec.directory), before)
  host.onStep = undefined
  await writeFile(files.memoryPath, 'of another')
  await t.rejects(facetOf(vm).capture(files), { code: 'EEXIST' })
  t.equal(await readFile(files.memoryPath, 'utf8'), 'of another', 'what was there is as it was')
  t.same(await contents(spec.directory), [...before, 'copied'].sort())
  await rm(files.memoryPath)
  await facetOf(vm).copyAhead?.(files.memoryPath)
  const image = await facetOf(vm).capture(files)
  t.match(image, { vmmVersion: vm.handle.vmmVersion, key: await imagingOf(await fixture.makeDriver()).key(spec), stateBytes: (await stat(files.statePath)).size })
})

await t.test('a restored guest takes its first step after beforeRun, and none when that fails', async (t) => {
  const host = new WholeHost()
  const fixture = fixtureOf(host)
  const driver = await fixture.makeDriver()
  const { vm, captured: { spec, image, statePath } } = await capturedShared(t, fixture)
  await vm.kill()
  let seen: VmHandle | undefined
  await t.rejects(imagingOf(driver).restore(spec, image, statePath, {
    beforeRun: async (handle) => {
      seen = handle
      t.same((await driver.attach(handle)).state, { status: 'paused' })
      throw new Error('not noted')
    }
  }), /not noted/)
  t.same(seen === undefined ? undefined : (await driver.attach(seen)).state, { status: 'gone' })
  const back = await imagingOf(driver).restore(spec, image, statePath, { beforeRun: async () => {} })
  t.teardown(() => back.kill())
  t.same(back.state, { status: 'running' })
})

await t.test('the stream of a server ends with its next one, and not with that of the server after it; a released VM is not heard of', async (t) => {
  const host = new WholeHost()
  const fixture = fixtureOf(host)
  const driver = await fixture.makeDriver()
  const vm = await launch(t, driver, await makeSpec(t, fixture))
  const old = await vm.connect()
  host.servers++
  const next = await driver.attach(vm.handle)
  await next.connect()
  t.notOk(old.destroyed)
  const later = await vm.connect()
  t.ok(old.destroyed)
  const heard: string[] = []
  vm.onState(({ status }) => { heard.push(status) })
  vm.release()
  await next.kill()
  t.same(heard, [])
  t.ok(later.destroyed)
  await t.rejects(next.connect(), { code: 'vm_gone' })
  t.same((await driver.attach({ ...vm.handle, bootId: 'another boot' })).state, { status: 'gone' }, 'a VM that nobody knows has ended')
})

await t.test('of two records of what is written to a disk, the later one lives', async (t) => {
  const host = new WholeHost()
  const fixture = fixtureOf(host)
  const vm = await launch(t, await fixture.makeDriver(), await makeSpec(t, fixture))
  host.of(vm.handle).changes = [{ offset: 0, bytes: 512 }]
  await t.rejects(async () => await vm.trackDisk?.('none'), { code: 'vm_spec_invalid' })
  const first = await vm.trackDisk?.('overlay')
  const second = await vm.trackDisk?.('overlay')
  await t.rejects(async () => await first?.ranges(), /has ended/)
  await first?.end()
  t.same(await second?.ranges(), [{ offset: 0, bytes: 512 }])
  await second?.end()
  await t.rejects(async () => await second?.ranges(), /has ended/)
})

await t.test('a guest with a balloon has what it was asked to make do with, one without has none', async (t) => {
  const fixture = fixtureOf(new WholeHost())
  const driver = await fixture.makeDriver()
  const spec = await sharedSpec(t, fixture)
  t.equal((await launch(t, driver, await makeSpec(t, fixture))).balloon, undefined)
  const { balloon } = await launch(t, driver, { ...spec, balloon: true })
  t.equal(balloon?.wholeBytes, spec.memoryBytes)
  t.equal(await balloon?.bytes(), spec.memoryBytes)
  await balloon?.aim(2 ** 26)
  t.equal(await balloon?.bytes(), 2 ** 26)
})

await t.test('a disk is plugged and goes again as often as that is asked for, and is not there when it fails', async (t) => {
  const host = new WholeHost()
  const fixture = fixtureOf(host)
  const spec = await makeSpec(t, fixture)
  const vm = await launch(t, await fixture.makeDriver(), spec)
  const disk: VmDisk = { id: 'volume-0', path: join(spec.directory, 'volume'), readonly: false, unit: 0 }
  await writeFile(disk.path, '')
  for (let turn = 0; turn < 2; turn++) await vm.plugDisk?.(disk)
  t.equal(host.of(vm.handle).disks.get(disk.id), disk.path)
  for (let turn = 0; turn < 2; turn++) await vm.unplugDisk?.(disk.id)
  t.notOk(host.of(vm.handle).disks.has(disk.id))
  failing(host, 'plug-disk')
  await t.rejects(async () => await vm.plugDisk?.(disk), /no plug-disk/)
  t.notOk(host.of(vm.handle).disks.has(disk.id))
})
