// Saving and restoring is tried before it is trusted, with a real VM, and the answer is kept.
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { processesIn } from '../../../setup/server/leftovers.ts'
import { makeDriver } from './machine.ts'

t.setTimeout(600_000)

/** A folder that a VM's user passes through. */
async function makeFolder (t: Test): Promise<string> {
  const top = await mkdtemp(join(tmpdir(), 'berth-proof-'))
  await chmod(top, 0o711)
  t.teardown(() => rm(top, { recursive: true, force: true }))
  return join(top, 'driver')
}

/** A VMM that does what the real one does, until it is to load a state. */
async function brokenVmm (folder: string, onRestore: string): Promise<string> {
  const path = join(folder, '..', 'broken-qemu')
  const real = process.env['BERTH_QEMU'] ?? 'qemu-system-x86_64'
  await writeFile(path, `#!/bin/sh\ncase "$*" in *"-incoming defer"*) ${onRestore} ;; esac\nexec ${real} "$@"\n`, { mode: 0o755 })
  return path
}

await t.test('a VM is saved and restored once, with memory that is plugged in, and nothing is left but the answer', async (t) => {
  const folder = await makeFolder(t)
  const driver = await makeDriver({}, folder)
  const [plain, plugged] = await Promise.all([driver.imaging?.refusal({}), driver.imaging?.refusal({ hotplugBytes: 2 ** 27 })])
  t.same([plain, plugged], [undefined, undefined])
  t.same((await readdir(folder)).filter((name) => name !== 'probe.json'), ['imaging.json'])
  t.same(await processesIn(folder), [])
  const kept = await readFile(join(folder, 'imaging.json'), 'utf8')
  // One that would find out anew would fail.
  const later = await makeDriver({ launchTimeout: '0ms' }, folder)
  t.equal(await later.imaging?.refusal({}), undefined)
  await writeFile(join(folder, 'imaging.json'), kept.replace('imaging ', 'imaging of another kernel '))
  const other = await makeDriver({ launchTimeout: '0ms' }, folder)
  t.match(await other.imaging?.refusal({}), /^QEMU \S+ does not save and restore VMs on this host: .*did not answer within 0 ms/)
  t.match(await readFile(join(folder, 'imaging.json'), 'utf8'), /another kernel/, 'what may pass is not kept on disk')
})

await t.test('a VMM that takes no state is found out, with its own words', async (t) => {
  const folder = await makeFolder(t)
  const driver = await makeDriver({ binary: await brokenVmm(folder, 'echo "error while loading state section id 1(ram)" >&2; exit 1') }, folder)
  t.match(await driver.imaging?.refusal({}), /^QEMU \S+ does not save and restore VMs on this host: .*error while loading state section/)
  t.match(await driver.imaging?.refusal({ hotplugBytes: 2 ** 27 }), /plugged in on this host: .*error while loading state section/)
  t.notOk(existsSync(join(folder, 'imaging.json')))
  t.same(await processesIn(folder), [])
})

await t.test('a driver that is closed in the middle of it leaves no VM', async (t) => {
  const folder = await makeFolder(t)
  const driver = await makeDriver({}, folder)
  const asked = driver.imaging?.refusal({})
  while ((await processesIn(join(folder, 'imaging-probe'))).length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  const refused = t.rejects(async () => await asked, { message: 'the server is stopping' })
  await driver.close?.()
  await refused
  t.same(await processesIn(folder), [])
  t.notOk(existsSync(join(folder, 'imaging-probe')))
})
