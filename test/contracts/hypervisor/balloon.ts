// Cases of the balloon: what a guest gives back is the host's, and it goes on with the rest, also from an image.
import { readFile, writeFile } from 'node:fs/promises'
import type { Test } from 'tap'
import type { Vm, VmBalloon } from '../../../core/library/hypervisor.ts'
import { eventually } from '../../helpers/eventually.ts'
import { memoryOf } from '../../helpers/vmm.ts'
import { converse, launch, makeSpec, workload, type HypervisorFixture } from './fixture.ts'
import { captureInto, imagingOf, runAndCapture, ticking } from './image-fixture.ts'

const MIB = 2 ** 20
const AWAY = 24 * MIB
/** A guest gives up what is free: with room for what its kernel takes, which differs by tens of MB between versions, and for what a program holds. */
const WITH_ROOM = 256 * MIB

function balloonOf (vm: Vm): VmBalloon {
  if (vm.balloon === undefined) throw new Error('the VM has no balloon')
  return vm.balloon
}

async function shrunk ({ balloon }: Pick<Vm, 'balloon'>): Promise<boolean> {
  return balloon !== undefined && await balloon.bytes() <= balloon.wholeBytes - AWAY
}

export async function balloonCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  const driver = await fixture.makeDriver()
  const skip = driver.features?.includes('balloon-control') !== true ? 'the driver has no balloon' : fixture.isDouble === true ? 'only a kernel gives memory back' : false
  await t.test('memory that goes back to the host', { skip }, async (t) => {
    await t.test('a guest makes do with less, with what its program holds, and gets all of it again', async (t) => {
      const spec = { ...await makeSpec(t, fixture), memoryBytes: WITH_ROOM, balloon: true }
      const vm = await launch(t, driver, spec)
      const balloon = balloonOf(vm)
      t.equal(balloon.wholeBytes, spec.memoryBytes)
      await (await converse(t, fixture, vm)).run(workload('hold', '24'))
      const sums = async (): Promise<Set<string>> => new Set((await readFile(spec.files.output, 'utf8')).split('\n').slice(0, -1))
      await eventually('it holds something', async () => (await sums()).size > 0)
      t.equal(await balloon.bytes(), balloon.wholeBytes)
      const before = await sums()
      await balloon.aim(balloon.wholeBytes - AWAY)
      await eventually('it has given up what was asked for', async () => await shrunk(vm), { explain: async () => `${(balloon.wholeBytes - await balloon.bytes()) / MIB} MiB` })
      await writeFile(spec.files.output, '')
      await eventually('it has looked again', async () => (await sums()).size > 0)
      t.same(await sums(), before)
      vm.release()
      const attached = await driver.attach(JSON.parse(JSON.stringify(vm.handle)))
      t.teardown(() => attached.kill())
      await balloonOf(attached).aim(balloon.wholeBytes)
      await eventually('it has everything again', async () => await balloonOf(attached).bytes() === balloon.wholeBytes)
    })

    await t.test('what a program has let go of goes back by itself, and the VMM is smaller', async (t) => {
      // Linux tells only of what it has free beyond some 64 MB.
      const spec = { ...await makeSpec(t, fixture), memoryBytes: 256 * MIB, balloon: true }
      const vm = await launch(t, driver, spec)
      const link = await converse(t, fixture, vm)
      await link.run(workload('wait'))
      const { pid } = vm.handle
      const fill = link.exec({ argv: ['/bin/busybox', 'sh', '-c', 'busybox mount -t tmpfs -o size=100% tmpfs /tmp; i=0; while [ $i -lt 48 ]; do cat /bin/busybox; i=$((i+2)); done >/tmp/big; busybox rm /tmp/big'] })
      t.match(await fill.result, { exitCode: 0 })
      const { peakBytes } = await memoryOf(pid)
      await eventually('the host has it again', async () => (await memoryOf(pid)).rssBytes < peakBytes - 24 * MIB)
      t.equal(await balloonOf(vm).bytes(), spec.memoryBytes, 'and the guest may use it when it needs it')
    })

    await t.test('a VM that was asked for memory when it was captured has all of it once it is restored, and can be asked again', { skip: driver.imaging === undefined ? 'the driver makes no images' : false }, async (t) => {
      const spec = { ...await makeSpec(t, fixture), balloon: true }
      const vm = await launch(t, driver, spec)
      const aiming = balloonOf(vm)
      await aiming.aim(aiming.wholeBytes - AWAY)
      await eventually('it has given it up', async () => await shrunk(vm))
      const { image, statePath, memoryPath, tick } = await runAndCapture(t, fixture, vm, spec)
      await vm.kill()
      await writeFile(spec.files.output, '')
      const back = await imagingOf(driver).restore({ ...spec, memory: { path: memoryPath, sharing: 'shared' } }, image, statePath)
      t.teardown(() => back.kill())
      t.equal((await ticking(spec.files.output, tick.count)).nonce, tick.nonce)
      await eventually('it has everything again', async () => await balloonOf(back).bytes() === aiming.wholeBytes)
      await balloonOf(back).aim(aiming.wholeBytes - AWAY)
      await eventually('it has given it up again', async () => await shrunk(back))
      t.ok(await ticking(spec.files.output, tick.count + 10))
    })

    await t.test('an image of a VM without a balloon is restored without, and so is its own', { skip: driver.imaging === undefined ? 'the driver makes no images' : false }, async (t) => {
      const spec = await makeSpec(t, fixture)
      const vm = await launch(t, driver, spec)
      t.equal(vm.balloon, undefined)
      const { memoryPath, ...first } = await runAndCapture(t, fixture, vm, spec)
      await vm.kill()
      let { tick } = first
      let captured: Awaited<ReturnType<typeof captureInto>> = { ...first, memory: { path: memoryPath, sharing: 'shared' } }
      for (const name of ['second', 'third']) {
        const { image, statePath, memory } = captured
        const back = await imagingOf(driver).restore({ ...spec, balloon: true, memory }, image, statePath)
        t.teardown(() => back.kill())
        t.equal(back.balloon, undefined)
        tick = await ticking(spec.files.output, tick.count)
        captured = await captureInto(back, spec, name)
        await back.kill()
      }
      t.not(captured.image.key, await imagingOf(driver).key({ ...spec, balloon: true }), 'and no new VM is taken for one of it')
    })
  })
}
