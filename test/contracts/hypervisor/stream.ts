// Cases of the byte stream to the guest's first process.
import type { Test } from 'tap'
import { converse, launch, makeSpec, type HypervisorFixture } from './fixture.ts'
import { waitingVm } from './image-fixture.ts'

export async function streamCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  await t.test('the guest answers on the stream; a new stream ends the old one, and the guest answers there too', async (t) => {
    const { vm } = await waitingVm(t, fixture, await fixture.makeDriver(), await makeSpec(t, fixture))
    const first = await converse(t, fixture, vm)
    const hello = await first.hello
    t.equal(hello.phase, 'waiting')
    const second = await converse(t, fixture, vm)
    t.type(await first.closed, 'string')
    t.equal((await second.hello).bootId, hello.bootId, 'it is the same guest')
  })

  await t.test('of two streams opened at once, one lives', async (t) => {
    const { vm } = await waitingVm(t, fixture, await fixture.makeDriver(), await makeSpec(t, fixture))
    const [one, two] = await Promise.all([vm.connect(), vm.connect()])
    t.ok(one.destroyed || two.destroyed)
    t.notOk(one.destroyed && two.destroyed)
    const link = fixture.guest.link(one.destroyed ? two : one)
    t.teardown(() => link.close())
    t.equal((await link.hello).phase, 'waiting')
  })

  await t.test('the stream ends with the VM, and none can be opened afterwards', async (t) => {
    const vm = await launch(t, await fixture.makeDriver(), await makeSpec(t, fixture))
    const stream = await vm.connect()
    stream.resume()
    const closed = new Promise((resolve) => stream.once('close', resolve))
    await vm.kill()
    await closed
    await t.rejects(vm.connect())
  })
}
