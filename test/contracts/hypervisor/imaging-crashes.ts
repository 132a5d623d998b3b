// Cases of a server that is killed in the middle of a capture or a restore: what it leaves can be taken over, or is ended by the next one.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { processesIn } from '../../../setup/server/leftovers.ts'
import { isEmulatedHost } from '../../emulated-host/slow.ts'
import { contents, launch, type HypervisorFixture } from './fixture.ts'
import { capturedShared, facetOf, forkSpec, imagingOf, own, ticking } from './image-fixture.ts'
import type { CrashOrder } from './image-and-die.ts'

// From before the first step to after the last, on a fast machine and on a slow one. An emulated host takes seconds for each step, and as many to start the server that is killed.
const RESTORE_KILLS_MS = isEmulatedHost ? [50, 1000, 'after'] as const : [5, 15, 30, 60, 100, 200, 'after'] as const
const CAPTURE_KILLS_MS = isEmulatedHost ? [0, 300, 'after'] as const : [0, 2, 5, 10, 20, 'after'] as const

export async function imagingCrashCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  await t.test('a server that is killed while it restores leaves nothing that the next restore does not end', async (t) => {
    const driver = await fixture.makeDriver()
    const { vm, captured } = await capturedShared(t, fixture)
    await vm.kill()
    const { image, statePath, tick } = captured
    const spec = await forkSpec(t, fixture, captured)
    const before = await contents(spec.directory)
    for (const killAt of RESTORE_KILLS_MS) await dieAt(fixture, { do: 'restore', spec, image, statePath, killAt })
    const back = await imagingOf(driver).restore(spec, image, statePath)
    t.teardown(() => back.kill())
    t.same(await vmmsIn(spec.directory), [back.handle.pid], 'there is one VMM')
    t.equal((await ticking(spec.files.output, tick.count)).nonce, tick.nonce)
    await back.kill()
    t.same(await contents(spec.directory), before)
  })

  await t.test('a server that is killed as a restored guest is about to run leaves a VM that the next one takes over and resumes', async (t) => {
    const driver = await fixture.makeDriver()
    const { vm, captured } = await capturedShared(t, fixture)
    await vm.kill()
    const { spec, image, statePath, tick } = captured
    await writeFile(spec.files.output, '')
    await dieAt(fixture, { do: 'restore', spec, image, statePath, killAt: 'before it runs' })
    const found = await driver.attach(JSON.parse(await readFile(`${statePath}.handle`, 'utf8')))
    t.teardown(() => found.kill())
    t.match(found.state.status, /^(running|paused)$/)
    await facetOf(found).resume()
    t.equal((await ticking(spec.files.output, tick.count)).nonce, tick.nonce)
    t.same(await vmmsIn(spec.directory), [found.handle.pid])
    await found.kill()
  })

  await t.test('a restore whose handle cannot be noted leaves nothing behind', async (t) => {
    const driver = await fixture.makeDriver()
    const { vm, captured } = await capturedShared(t, fixture)
    await vm.kill()
    const { spec, image, statePath } = captured
    const before = await contents(spec.directory)
    const why = new Error('the disk is full')
    await t.rejects(imagingOf(driver).restore(spec, image, statePath, { beforeRun: async () => { throw why } }), why)
    t.same(await contents(spec.directory), before)
    t.same(await vmmsIn(spec.directory), [])
  })

  await t.test('a server that is killed while it captures leaves a VM that the next one takes over, resumes and captures', async (t) => {
    const driver = await fixture.makeDriver()
    const { vm, captured } = await capturedShared(t, fixture)
    const { spec, statePath, tick } = captured
    vm.release()
    const written = `${statePath}-memory`
    let { count } = tick
    for (const killAt of CAPTURE_KILLS_MS) {
      for (const path of [statePath, written]) await rm(path, { force: true })
      await dieAt(fixture, { do: 'capture', handle: vm.handle, statePath, memoryPath: written, killAt })
      const found = await driver.attach(vm.handle)
      t.match(found.state.status, /^(running|paused)$/)
      await facetOf(found).resume()
      const now = await ticking(spec.files.output, count + 5)
      t.equal(now.nonce, tick.nonce);
      ({ count } = now)
      found.release()
    }
    const last = await driver.attach(vm.handle)
    for (const path of [statePath, written]) await rm(path, { force: true })
    const image = await facetOf(last).capture({ statePath, memoryPath: written })
    const memory = { path: facetOf(last).memoryFile ?? written, sharing: 'shared' as const }
    await own(spec, memory.path)
    await last.kill()
    t.notOk((await contents(spec.directory)).includes('capture.sock'))
    const back = await launch(t, { ...driver, launch: (wanted) => imagingOf(driver).restore({ ...wanted, memory }, image, statePath) }, spec)
    t.equal((await ticking(spec.files.output, count)).nonce, tick.nonce)
    await back.kill()
  })
}

/** VMMs that work in the folder, without what they have started for themselves. */
async function vmmsIn (directory: string): Promise<number[]> {
  const pids = (await processesIn(directory)).map(({ pid }) => pid)
  const parents = await Promise.all(pids.map(async (pid) => Number((await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1]?.split(' ')[1])))
  return pids.filter((_, index) => !pids.includes(parents[index] ?? 0))
}

/** Has another server do it, and be killed at that time. */
async function dieAt (fixture: HypervisorFixture, order: CrashOrder): Promise<void> {
  const program = fileURLToPath(new URL('image-and-die.js', import.meta.url))
  const child = spawn(process.execPath, [program, fixture.module.href, JSON.stringify(order)], { stdio: ['ignore', 'ignore', 'inherit'] })
  const [code, signal] = await once(child, 'close')
  if (signal !== 'SIGKILL') throw new Error(`the server in between ended with ${String(code)}`)
}
