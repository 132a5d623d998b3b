// Cases of drivers whose VMs share a memory file, and are saved as differences from it.
import { existsSync } from 'node:fs'
import { chmod, chown, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { HypervisorDriver, VmSpec } from '../../../core/library/hypervisor.ts'
import { converse, type HypervisorFixture } from './fixture.ts'
import { capturedShared, facetOf, forkSpec, imagingOf, own, ticking } from './image-fixture.ts'

export async function privateMemoryCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  const driver = await fixture.makeDriver()
  const memory = driver.imaging?.privateMemory
  await t.test('memory that VMs share', { skip: memory === undefined ? 'the driver has none' : false }, async (t) => {
    const refusal = await memory?.refusal()
    await sharingCases(t, fixture, driver, refusal ?? false)
  })
}

async function sharingCases (t: Test, fixture: HypervisorFixture, driver: HypervisorDriver, skip: string | false): Promise<void> {
  await t.test('a VM on private memory is saved as what it has changed, again and again, and goes on with that, as another user', { skip }, async (t) => {
    t.equal(await driver.imaging?.privateMemory?.isProven(), true)
    const { vm, captured } = await capturedShared(t, fixture)
    const { memoryPath, tick } = captured
    await vm.kill()
    await chmod(memoryPath, 0o444)
    const before = await readFile(memoryPath)
    let from: Pick<typeof captured, 'image' | 'statePath'> & { readonly changes?: string, readonly spec: VmSpec } = captured
    let count = tick.count
    for (const uid of [61_003, 61_004, 61_005]) {
      const spec = await asUser({ ...await forkSpec(t, fixture, { spec: from.spec, memoryPath }), memory: { path: memoryPath, sharing: 'private', ...from.changes === undefined ? {} : { changes: from.changes } } }, uid)
      const fork = await imagingOf(driver).restore(spec, from.image, from.statePath)
      t.teardown(() => fork.kill())
      const went = await ticking(spec.files.output, count)
      t.equal(went.nonce, tick.nonce)
      t.equal((await (await converse(t, fixture, fork)).hello).bootId, captured.bootId)
      const imaging = facetOf(fork)
      t.equal(imaging.memoryFile, undefined)
      t.equal(imaging.memoryBase, memoryPath)
      const [statePath, changes] = [join(spec.directory, 'state'), join(spec.directory, 'changes')]
      const image = await imaging.capture({ statePath, changesPath: changes, memoryPath: join(spec.directory, 'whole') })
      t.notOk(existsSync(join(spec.directory, 'whole')), 'little has changed')
      t.match(image, { changes: true, key: captured.image.key, shape: captured.image.shape })
      t.ok((await stat(changes)).size < before.length / 4, 'far less than all of it')
      t.same(fork.state, { status: 'paused' })
      // It goes on after a capture, too.
      await imaging.resume()
      count = (await ticking(spec.files.output, went.count + 3)).count
      await fork.kill()
      from = { spec, image, statePath, changes }
      count = went.count
    }
    t.ok(before.equals(await readFile(memoryPath)), 'the file is as it was')
  })

  await t.test('a VM on private memory can be saved whole, and what belongs together is asked for', { skip }, async (t) => {
    const { vm, captured } = await capturedShared(t, fixture)
    await vm.kill()
    const spec = await forkSpec(t, fixture, captured)
    const fork = await imagingOf(driver).restore(spec, captured.image, captured.statePath)
    t.teardown(() => fork.kill())
    const { nonce, count } = await ticking(spec.files.output, captured.tick.count)
    const [statePath, memoryPath, changes] = ['state', 'whole', 'changes'].map((name) => join(spec.directory, name))
    if (statePath === undefined || memoryPath === undefined || changes === undefined) throw new Error('three names give three paths')
    await facetOf(fork).copyAhead?.(memoryPath)
    const whole = await facetOf(fork).capture({ statePath, memoryPath })
    t.notOk('changes' in whole)
    const apart = await facetOf(fork).capture({ statePath: `${statePath}-2`, changesPath: changes })
    await fork.kill()
    t.equal((await stat(memoryPath)).size, spec.memoryBytes)
    await t.rejects(imagingOf(driver).restore(spec, apart, `${statePath}-2`), { code: 'vm_spec_invalid' })
    await t.rejects(imagingOf(driver).restore({ ...spec, memory: { path: captured.memoryPath, sharing: 'private', changes } }, captured.image, captured.statePath), { code: 'vm_spec_invalid' })
    await writeFile(`${changes}-cut`, (await readFile(changes)).subarray(0, -1))
    await t.rejects(imagingOf(driver).restore({ ...spec, memory: { path: captured.memoryPath, sharing: 'private', changes: `${changes}-cut` } }, apart, `${statePath}-2`))
    await writeFile(spec.files.output, '')
    const back = await imagingOf(driver).restore({ ...spec, memory: { path: memoryPath, sharing: 'shared' } }, whole, statePath)
    t.teardown(() => back.kill())
    t.equal((await ticking(spec.files.output, count)).nonce, nonce)
  })
}

/** Gives its files to a user of its own, where that can be done. */
async function asUser (spec: VmSpec, uid: number): Promise<VmSpec> {
  if (process.getuid?.() !== 0) return spec
  const mine = { ...spec, identity: { uid, gid: uid } }
  await chmod(spec.directory, 0o711)
  for (const path of [...Object.values(spec.files), ...spec.disks.filter(({ readonly }) => !readonly).map(({ path }) => path)]) await own(mine, path)
  await chown(spec.directory, 0, 0)
  return mine
}
