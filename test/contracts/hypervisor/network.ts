// Cases of network devices: a guest that reaches others by its TAP, keeps doing so on another one after a restore, and a VMM that can do nothing else there.
import { readFile, readlink, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { MemoryImage, Vm, VmNetwork, VmSpec } from '../../../core/library/hypervisor.ts'
import type { GuestLink } from '../../../plugins/guest/contract.ts'
import { processesIn } from '../../../setup/server/leftovers.ts'
import { contents, converse, launch, makeSpec, workload, type HypervisorFixture } from './fixture.ts'
import { captureInto, facetOf, imagingOf, own, sharedSpec, ticking } from './image-fixture.ts'
import { echoInGuest, echoOutside, GATEWAY, guestRun, TestNetwork } from './network-fixture.ts'

const USER = { uid: 61_004, gid: 61_004 }
const MACS = ['02:00:00:0a:00:01', '02:00:00:0a:00:02', '02:00:00:0a:00:03'] as const
const IPS = ['10.99.0.11', '10.99.0.12', '10.99.0.13'] as const
// more than the queues on the way hold
const MUCH = 'all that was sent '.repeat(100_000)

export async function networkCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  const skip = fixture.hasNetwork !== true
    ? 'the driver\'s guests have no network'
    : process.getuid?.() === 0 ? false : 'only root can make a network for guests'
  await t.test('network devices', { skip }, async (t) => {
    for (const cases of [trafficCases, standbyCases, templateCases, refusalCases]) await cases(t, fixture)
  })
}

type Index = 0 | 1 | 2

/** The workload's part that gives a guest one of the addresses. */
const address = (index: Index) => ({ network: { mac: MACS[index], address: `${IPS[index]}/24`, gateway: GATEWAY, dns: [GATEWAY] } })

const ping = (ip: string): readonly string[] => ['ping', '-c', '1', '-W', '20', ip]

async function trafficCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  await t.test('two VMs on one bridge reach it and one another, and their VMMs have no rights in its namespace', async (t) => {
    const driver = await fixture.makeDriver()
    const network = await TestNetwork.make(t)
    const other = await makeSpec(t, fixture, { deep: true })
    const specs = [
      { ...await makeSpec(t, fixture, { identity: USER }), network: await network.tap(USER.uid, MACS[0]) },
      { ...other, network: await network.tap(other.identity?.uid, MACS[1]) }
    ] as const
    const vms = await Promise.all(specs.map(async (spec) => await launch(t, driver, spec)))
    const links = await Promise.all(vms.map(async (vm) => await converse(t, fixture, vm)))
    const [one, two] = links
    if (one === undefined || two === undefined) throw new Error('two were launched')
    await Promise.all([one.run({ ...workload('wait'), ...address(0) }), two.run({ ...workload('wait'), ...address(1) })])
    await hasAddress(t, one, 0)
    t.match(await network.run(ping(IPS[0])), / 0% packet loss/)
    t.match(await guestRun(one, ping(IPS[1])), / 0% packet loss/)
    t.equal(await echoInGuest(network, one, IPS[0], MUCH), MUCH)
    t.equal(await echoOutside(network, two, MUCH), MUCH)
    for (const [index, vm] of vms.entries()) await withoutRights(t, vm, network, { isJailed: fixture.hasJailer === true && specs[index]?.identity !== undefined })
  })
}

async function withoutRights (t: Test, { handle: { pid } }: Vm, network: TestNetwork, { isJailed }: { readonly isJailed: boolean }): Promise<void> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  for (const set of ['Inh', 'Prm', 'Eff', 'Amb', ...isJailed ? [] : ['Bnd']]) t.match(status, new RegExp(`^Cap${set}:\\s+0+$`, 'm'))
  t.match(status, /^NoNewPrivs:\s+1$/m)
  t.equal(await readlink(`/proc/${pid}/ns/net`), `net:[${(await stat(network.path)).ino}]`, 'it is in the TAP\'s namespace')
}

async function standbyCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  const driver = await fixture.makeDriver()
  const skip = driver.imaging === undefined ? 'the driver makes no memory images' : false
  await t.test('a VM goes on where its TAP is gone, on another one, with the address that it had and with another one', { skip }, async (t) => {
    const network = await TestNetwork.make(t)
    const made = await sharedSpec(t, fixture, { identity: USER })
    let spec: VmSpec & { readonly network: VmNetwork } = { ...made, network: await network.tap(USER.uid, MACS[0]) }
    let vm = await launch(t, driver, spec)
    let link = await converse(t, fixture, vm)
    await link.run({ ...workload('tick'), ...address(0) })
    t.match(await network.run(ping(IPS[0])), / 0% packet loss/)
    const { nonce } = await ticking(spec.files.output)
    for (const [turn, index] of ([0, 2] as const).entries()) {
      await link.sleep()
      const { image, statePath, memory } = await captureInto(vm, spec, `turn-${turn}`)
      await vm.kill()
      await network.remove(spec.network)
      spec = { ...spec, memory, network: await network.tap(USER.uid, MACS[index]) }
      t.equal(await imagingOf(driver).key(spec), image.key)
      const { count } = await ticking(spec.files.output)
      vm = await imagingOf(driver).restore(spec, image, statePath)
      t.teardown(() => vm.kill())
      link = await converse(t, fixture, vm)
      await link.wake(address(index))
      t.equal((await ticking(spec.files.output, count)).nonce, nonce)
      await hasAddress(t, link, index)
      t.match(await network.run(ping(IPS[index])), / 0% packet loss/)
      t.equal(await echoInGuest(network, link, IPS[index], MUCH), MUCH)
      t.equal(await echoOutside(network, link, MUCH), MUCH)
    }
    await t.rejects(network.run(['ping', '-c', '1', '-W', '1', IPS[0]]), 'nobody has the first address any more')
  })
}

async function templateCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  const driver = await fixture.makeDriver()
  const skip = driver.imaging === undefined ? 'the driver makes no memory images' : false
  await t.test('VMs made of one that waited for its workload have addresses of their own from the beginning', { skip }, async (t) => {
    const network = await TestNetwork.make(t)
    const made = await makeSpec(t, fixture)
    const source = { ...made, network: await network.tap(made.identity?.uid, MACS[0]) }
    const vm = await launch(t, driver, source)
    await converse(t, fixture, vm)
    const files = { statePath: join(source.directory, 'state'), memoryPath: join(source.directory, 'memory') }
    const image = await facetOf(vm).capture(files)
    await vm.kill()
    await own(source, files.memoryPath)
    const memory = { path: files.memoryPath, sharing: 'private' as const }
    const other = { ...await makeSpec(t, fixture), memory }
    for (const [what, wrong] of [['none', source.network], ['virtio', undefined]] as const) {
      const [from, spec] = wrong === undefined ? [image, other] : [{ ...image, shape: shapeWithout(image.shape) }, { ...other, network: wrong }]
      await t.rejects(imagingOf(driver).restore(spec, from, files.statePath), { code: 'image_incompatible', message: new RegExp(`network is "${what}`) })
    }
    t.not(await imagingOf(driver).key(other), image.key, 'a VM without a network is another kind')
    const missing = { ...source.network, tap: 'tapmissing' }
    await t.rejects(imagingOf(driver).restore({ ...other, network: missing }, image, files.statePath), { code: 'vm_launch_failed', message: /no TAP tapmissing/ })
    t.same(await processesIn(other.directory), [])
    const [one, two] = await Promise.all(([1, 2] as const).map(async (index) => {
      const mine = await makeSpec(t, fixture)
      const spec = { ...mine, memory, network: await network.tap(mine.identity?.uid, MACS[index]) }
      const clone = await imagingOf(driver).restore(spec, image, files.statePath)
      t.teardown(() => clone.kill())
      const link = await converse(t, fixture, clone)
      await link.run({ ...workload('wait'), ...address(index) })
      return link
    }))
    if (one === undefined || two === undefined) throw new Error('two were restored')
    t.match(await guestRun(one, ping(IPS[2])), / 0% packet loss/)
    t.equal(await echoInGuest(network, two, IPS[2], MUCH), MUCH)
  })
}

async function hasAddress (t: Test, link: GuestLink, index: Index): Promise<void> {
  t.match(await guestRun(link, ['ip', 'address', 'show', 'eth0']), new RegExp(`${MACS[index]}[^]*inet ${IPS[index]}/24`))
}

function shapeWithout (shape: MemoryImage['shape']): MemoryImage['shape'] {
  const { network, ...rest } = shape
  if (network === undefined) throw new Error('the shape of a VM with a network says so')
  return rest
}

async function refusalCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  await t.test('a namespace or TAP that is missing, another user\'s, or in use is refused by its name, and nothing is left', async (t) => {
    const driver = await fixture.makeDriver()
    const network = await TestNetwork.make(t)
    const taken = await network.tap(USER.uid, MACS[0])
    const foreign = await network.tap(USER.uid + 1, MACS[1])
    await launch(t, driver, { ...await makeSpec(t, fixture, { identity: USER }), network: taken })
    const asUser = await makeSpec(t, fixture, { identity: USER })
    const asServer = await makeSpec(t, fixture)
    const missing = { ...taken, tap: 'tapmissing' }
    const cases: ReadonlyArray<readonly [VmSpec, VmNetwork, RegExp]> = [
      [asUser, { ...taken, namespace: '/run/netns/bhv-missing' }, /\/run\/netns\/bhv-missing/],
      [asUser, { ...taken, namespace: asUser.files.output }, /output\.log/],
      [asUser, missing, /no TAP tapmissing/],
      [asServer, missing, /no TAP tapmissing/],
      [asUser, foreign, new RegExp(foreign.tap)],
      [asServer, foreign, new RegExp(foreign.tap)],
      [asUser, taken, new RegExp(`another process uses the TAP ${taken.tap}`)]
    ]
    const before = await contents(asUser.directory)
    for (const [spec, wanted, message] of cases) {
      await t.rejects(driver.launch({ ...spec, network: wanted }), { code: 'vm_launch_failed', message })
      t.same(await processesIn(spec.directory), [])
    }
    t.same(await contents(asUser.directory), before)
    t.same((await network.taps()).sort(), [taken.tap, foreign.tap], 'a TAP that is missing is not made')
    for (const wrong of [{ tap: 'a,b' }, { mac: '03:00:00:00:00:01' }, { namespace: 'here' }]) {
      await t.rejects(driver.launch({ ...asUser, network: { ...taken, ...wrong } }), { code: 'vm_spec_invalid', message: new RegExp(`network.${Object.keys(wrong).join()}`) })
    }
  })
}
