// Cases of VMs that stay paused after their capture, of drivers that say that they can: their image is as good as if they had ended, and they go on as if there were none.
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import type { MemoryImage, Vm, VmSpec } from '../../../core/library/hypervisor.ts'
import { launch, makeSpec, workload, type HypervisorFixture } from './fixture.ts'
import { facetOf, imagingOf, own, sharedSpec, ticking, waitingVm, type Tick } from './image-fixture.ts'

const PAUSE_MS = 1000

interface KeptVm {
  /** as a server knows it that has taken it over */
  readonly vm: Vm
  readonly spec: VmSpec
  readonly image: MemoryImage
  readonly statePath: string
  readonly memoryPath: string
  readonly tick: Tick
}

export async function keepingCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  const { imaging } = await fixture.makeDriver()
  const skip = imaging?.keepsPaused === true ? false : 'the driver keeps no paused VMs'
  for (const [where, makeVm] of [['with a memory file', sharedSpec], ['with memory in no file', makeSpec]] as const) {
    await t.test(`a captured VM ${where} that nobody is connected to writes nothing, whoever leaves it, and then goes on`, { skip }, async (t) => {
      const { vm, spec, tick } = await keptQuiet(t, fixture, await makeVm(t, fixture))
      await facetOf(vm).resume()
      t.same(vm.state, { status: 'running' })
      t.equal((await ticking(spec.files.output, tick.count + 5)).nonce, tick.nonce)
      const link = fixture.guest.link(await vm.connect())
      t.teardown(() => link.close())
      t.equal((await link.hello).phase, 'running')
    })
  }

  await t.test('the image of a captured VM that was kept for a while and ended is restored', { skip }, async (t) => {
    const { vm, spec, image, statePath, memoryPath, tick } = await keptQuiet(t, fixture, await sharedSpec(t, fixture))
    await vm.kill()
    await own(spec, memoryPath)
    await writeFile(spec.files.output, '')
    const back = await imagingOf(await fixture.makeDriver()).restore({ ...spec, memory: { path: memoryPath, sharing: 'shared' } }, image, statePath)
    t.teardown(() => back.kill())
    const after = await ticking(spec.files.output, tick.count)
    t.equal(after.nonce, tick.nonce)
    t.ok(after.count < tick.count + 1000, 'and did not run on meanwhile')
  })
}

/** Captures a VM that ticks, has the server that did so end, and looks whether anything of it changes. */
async function keptQuiet (t: Test, fixture: HypervisorFixture, spec: VmSpec): Promise<KeptVm> {
  const driver = await fixture.makeDriver()
  const first = spec.memory === undefined ? await launch(t, driver, spec) : (await waitingVm(t, fixture, driver, spec)).vm
  const link = fixture.guest.link(await first.connect())
  await link.run(workload('tick'))
  await ticking(spec.files.output)
  link.close()
  await link.closed
  const [statePath, written] = [join(spec.directory, 'state'), join(spec.directory, 'memory-written')]
  const image = await facetOf(first).capture({ statePath, memoryPath: written })
  const tick = await ticking(spec.files.output)
  const memoryPath = facetOf(first).memoryFile ?? written
  const paths = [memoryPath, statePath, ...spec.disks.filter(({ readonly }) => !readonly).map(({ path }) => path)]
  const before = await Promise.all(paths.map(contentOf))
  first.release()
  const vm = await (await fixture.makeDriver()).attach(first.handle)
  t.teardown(() => vm.kill())
  t.same(vm.state, { status: 'paused' })
  await sleep(PAUSE_MS)
  for (const [index, path] of paths.entries()) {
    const { bytes, writtenNs } = await contentOf(path)
    // Not hashed: that takes an emulated host half a minute.
    t.ok(before[index]?.bytes.equals(bytes), `${path} is as it was`)
    t.equal(writtenNs, before[index]?.writtenNs)
  }
  t.equal((await ticking(spec.files.output)).count, tick.count)
  return { vm, spec, image, statePath, memoryPath, tick }
}

async function contentOf (path: string): Promise<{ readonly bytes: Buffer, readonly writtenNs: bigint }> {
  return { bytes: await readFile(path), writtenNs: (await stat(path, { bigint: true })).mtimeNs }
}
