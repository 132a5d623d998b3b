// Cases of a VMM that is started while the memory of its VM is still being written.
import { rename, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import { copyChanged } from '../../../core/library/vmm/held-memory.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { processesIn } from '../../../setup/server/leftovers.ts'
import type { HypervisorFixture } from './fixture.ts'
import { capturedShared, imagingOf, own, ticking } from './image-fixture.ts'

/** longer than a VMM takes to start */
const LATE_MS = 500

export async function startingAheadCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  const driver = await fixture.makeDriver()
  const skip = imagingOf(driver).startsAhead === true ? false : 'the driver wants the whole file'
  await t.test('a VMM that is started before its memory file is filled waits for it', { skip }, async (t) => {
    const { vm, captured: { spec, image, statePath, memoryPath, tick } } = await capturedShared(t, fixture)
    await vm.kill()
    const whole = `${memoryPath}.whole`
    await rename(memoryPath, whole)
    const { size } = await stat(whole)
    const empty = async (): Promise<void> => {
      await rm(memoryPath, { force: true })
      await writeFile(memoryPath, '', { mode: 0o600 })
      await truncate(memoryPath, size)
      await own(spec, memoryPath)
    }
    await empty()
    const why = new Error('the disk is full')
    const failing = sleep(LATE_MS).then(() => { throw why })
    failing.catch(() => {})
    await t.rejects(imagingOf(driver).restore(spec, image, statePath, { memoryFilled: failing }), why)
    t.same(await processesIn(spec.directory), [], 'a VMM whose memory does not come is ended')
    await empty()
    await writeFile(spec.files.output, '')
    const memoryFilled = sleep(LATE_MS).then(async () => { await copyChanged(createHostCommands(), { from: whole, bytes: size, to: memoryPath }) })
    const back = await imagingOf(driver).restore(spec, image, statePath, { memoryFilled })
    t.teardown(() => back.kill())
    t.equal((await ticking(spec.files.output, tick.count)).nonce, tick.nonce)
  })
}
