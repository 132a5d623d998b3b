// Cases of several VMs, and of the users that they run as.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, readFile, stat } from 'node:fs/promises'
import type { Test } from 'tap'
import { contents, converse, launch, makeSpec, workload, type HypervisorFixture } from './fixture.ts'
import { withoutProcess } from './vmm.ts'

const ALICE = { uid: 61_001, gid: 61_001 }
const BOB = { uid: 61_002, gid: 61_002 }

export async function separationCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  await t.test('two VMs run side by side, and the end of one is nothing to the other', async (t) => {
    const driver = await fixture.makeDriver()
    const specs = [await makeSpec(t, fixture), await makeSpec(t, fixture)] as const
    const [one, two] = await Promise.all([launch(t, driver, specs[0]), launch(t, driver, specs[1])])
    t.not(one.handle.pid, two.handle.pid)
    const [a, b] = await Promise.all([converse(t, fixture, one), converse(t, fixture, two)])
    t.not((await a.hello).bootId, (await b.hello).bootId)
    await one.kill()
    t.equal(two.state.status, 'running')
    await b.run(workload('print', 'still here'))
    await two.wait()
    t.equal(await readFile(specs[1].files.output, 'utf8'), 'still here\n')
  })

  const skip = process.getuid?.() === 0 ? withoutProcess(fixture) : 'only root can give a VM a user of its own'
  await t.test('a VM runs as the user it was given, without other groups, and cannot read another VM\'s files', { skip }, async (t) => {
    const driver = await fixture.makeDriver()
    const specs = [await makeSpec(t, fixture, { identity: ALICE }), await makeSpec(t, fixture, { identity: BOB })] as const
    const vms = [await launch(t, driver, specs[0]), await launch(t, driver, specs[1])] as const
    const status = await readFile(`/proc/${vms[0].handle.pid}/status`, 'utf8')
    t.match(status, new RegExp(`^Uid:(\\s+${ALICE.uid}){4}$`, 'm'))
    t.match(status, new RegExp(`^Gid:(\\s+${ALICE.gid}){4}$`, 'm'))
    t.match(status, /^Groups:\s*$/m)
    if (fixture.hasJailer === true) t.notSame(await placeOf(`/proc/${vms[0].handle.pid}/root`), await placeOf('/'), 'it is in a jail')
    const [guest] = await Promise.all([converse(t, fixture, vms[0]), converse(t, fixture, vms[1])])
    const own = await openableBy(ALICE, specs[0].directory)
    t.ok(own.includes('output.log'), 'its own it can')
    t.same(await openableBy(ALICE, specs[1].directory), [])
    await vms[0].rotate('output', `${specs[0].files.output}.new`)
    await guest.run(workload('print', 'as myself'))
    await vms[0].wait()
    t.equal(await readFile(`${specs[0].files.output}.new`, 'utf8'), 'as myself\n')
  })
}

async function placeOf (path: string): Promise<unknown> {
  const { dev, ino } = await stat(path)
  return { dev, ino }
}

/** The names in a folder that a user can open for reading, or connect to. */
async function openableBy ({ uid, gid }: typeof ALICE, directory: string): Promise<string[]> {
  const names = await contents(directory)
  await chmod(directory, 0o711)
  const found: string[] = []
  for (const name of names) {
    // `test` asks the kernel for this very user; a folder that cannot be entered hides what is in it.
    const child = spawn('test', ['-r', name, '-o', '-w', name], { uid, gid, cwd: directory, stdio: 'ignore' })
    const [code] = await once(child, 'exit')
    if (code === 0) found.push(name)
  }
  return found
}
