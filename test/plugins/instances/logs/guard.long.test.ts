// The files that VMMs append to stay within their bound without a server, and who reads them is told of the gap.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, mkdir, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Signal } from '../../../../core/jobs/signal.ts'
import { follow } from '../../../../plugins/instances/logs/follow.ts'
import { startLogGuard } from '../../../../plugins/instances/logs/guard.ts'
import { packageRoot } from '../../../../core/package-root.ts'
import { createProcessRegister } from '../../../../core/process/register.ts'
import { eventually } from '../../../helpers/eventually.ts'
import { testFolder } from '../../../helpers/folder.ts'

const MAX_BYTES = 8 * 2 ** 20
/** what a log may take without a server, and what a writer adds meanwhile on a host under load */
const MOST_BYTES = 2 * MAX_BYTES + 16 * 2 ** 20
const MOST_REPORT_BYTES = 16 * 2 ** 20
/** more than any of that */
const WRITTEN_BYTES = 40 * 2 ** 20

async function folderOf (t: Test, ...instances: string[]): Promise<string> {
  const folder = testFolder(t, {})
  for (const name of instances) await makeInstance(folder, name)
  return folder
}

async function makeInstance (folder: string, name: string): Promise<void> {
  await mkdir(join(folder, name, 'qemu'), { recursive: true })
  for (const file of ['output.log', 'vmm.log', 'report']) await writeFile(join(folder, name, file), '')
}

/** A server that does nothing but start its guard, and can be killed. */
async function server (t: Test, folder: string): Promise<ChildProcess> {
  const module = join(packageRoot, 'dist/plugins/instances/logs/guard.js')
  const text = `import { startLogGuard } from ${JSON.stringify(module)}
    startLogGuard(${JSON.stringify(folder)}, ${MAX_BYTES}, { warn: console.error }, { add: () => () => {}, list: () => [] })
    setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', text], { detached: true, stdio: ['ignore', 'inherit', 'inherit'] })
  t.teardown(async () => { await end(child) })
  await eventually('the guard runs', async () => (await guards(folder)).length > 0)
  return child
}

/** Works where a VMM does, and appends to a file as fast as it can. */
function vmm (t: Test, folder: string, name: string, file: string): ChildProcess {
  const child = spawn('/bin/sh', ['-c', `while :; do head -c 262144 /dev/zero | tr '\\0' x; echo; done >> '${join(folder, name, file)}'`], { cwd: join(folder, name, 'qemu'), detached: true, stdio: 'ignore' })
  t.teardown(async () => { await end(child) })
  return child
}

async function end (child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  // The shell's programs, too: a group of their own.
  process.kill(-(child.pid ?? 0), 'SIGKILL')
  await exited
}

async function guards (folder: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const lines = await Promise.all(pids.map(async (pid) => await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')))
  return pids.filter((_pid, index) => lines[index]?.includes(`berth-log-guard\0${folder}\0`))
}

async function bytesOnDisk (path: string): Promise<number> {
  return (await stat(path)).blocks * 512
}

/** Waits until so much was written, and says how much of it was on the disk at most. */
async function mostWhile (path: string, written: number): Promise<number> {
  let most = 0
  await eventually(`${path} grows`, async () => {
    most = Math.max(most, await bytesOnDisk(path))
    return (await stat(path)).size >= written
  })
  return most
}

async function read (path: string, tail: number): Promise<string> {
  const blocks: Buffer[] = []
  for await (const block of follow({ path, tail, goesOn: () => false, wake: new Signal(), signal: new AbortController().signal, heartbeatMs: 60_000 })) blocks.push(block)
  return Buffer.concat(blocks).toString()
}

t.test('a guest that writes as fast as it can fills no disk after its server was killed, and its newest output is there', async (t) => {
  const folder = await folderOf(t, 'one', 'two')
  const output = join(folder, 'one/output.log')
  const first = await server(t, folder)
  const writer = vmm(t, folder, 'one', 'output.log')
  await end(first)
  const most = await mostWhile(output, WRITTEN_BYTES)
  t.ok(most < MOST_BYTES, `${most} bytes`)

  await t.test('nor does one whose log was being rotated, or that writes its report on and on', async (t) => {
    await rename(output, `${output}.1`)
    const { size } = await stat(`${output}.1`)
    const rotated = await mostWhile(`${output}.1`, size + WRITTEN_BYTES)
    t.ok(rotated < MOST_BYTES, `${rotated} bytes`)
    const reporter = vmm(t, folder, 'two', 'report')
    const report = await mostWhile(join(folder, 'two/report'), WRITTEN_BYTES)
    t.ok(report < MOST_REPORT_BYTES, `${report} bytes`)
    await end(reporter)
    await rename(`${output}.1`, output)
  })

  await end(writer)
  await appendFile(output, '\nthe newest\n')
  const text = await read(output, 10_000)
  t.match(text.slice(0, 200), /^\[berth: \d+ bytes that came before were dropped, since nobody rotated this file\]\n/)
  t.equal(text.slice(-12), '\nthe newest\n')
  t.ok(text.length > MAX_BYTES / 2, `${text.length} bytes`)
  t.equal(await read(output, 1), 'the newest\n')
  await eventually('the guard has ended with the last VMM', async () => (await guards(folder)).length === 0)
})

t.test('a guard takes the place of the one of an earlier server, and knows the VMs that are there and those that come', async (t) => {
  const folder = await folderOf(t, 'one')
  const first = await server(t, folder)
  vmm(t, folder, 'one', 'vmm.log')
  const [old] = await guards(folder)
  await end(first)
  await server(t, folder)
  await eventually('the earlier guard has ended', async () => {
    const found = await guards(folder)
    return found.length === 1 && found[0] !== old
  })
  await makeInstance(folder, 'late')
  vmm(t, folder, 'late', 'output.log')
  for (const path of ['one/vmm.log', 'late/output.log']) {
    const most = await mostWhile(join(folder, path), WRITTEN_BYTES)
    t.ok(most < MOST_BYTES, `${path}: ${most} bytes`)
  }
})

t.test('a guard that is killed is started again', async (t) => {
  const folder = await folderOf(t)
  const said: unknown[] = []
  const guard = startLogGuard(folder, MAX_BYTES, { warn: (facts: unknown) => { said.push(facts) } }, createProcessRegister())
  t.teardown(async () => { await guard.stop() })
  const [pid] = await eventually('the guard runs', async () => {
    const found = await guards(folder)
    return found.length > 0 && found
  })
  process.kill(Number(pid), 'SIGKILL')
  await eventually('another guard runs', async () => (await guards(folder)).some((found) => found !== pid))
  t.match(said, [{ reason: 'SIGKILL' }])
  await guard.stop()
  await eventually('it ends with its server', async () => (await guards(folder)).length === 0)
})

t.test('who follows a log too slowly is told what was dropped, and goes on behind it', async (t) => {
  const folder = await folderOf(t, 'one')
  const path = join(folder, 'one/output.log')
  const line = `${'x'.repeat(1023)}\n`
  await writeFile(path, line.repeat(1024))
  const guard = startLogGuard(folder, 2 ** 20, { warn: () => {} }, createProcessRegister())
  t.teardown(async () => { await guard.stop() })
  const reader = follow({ path, tail: 10_000, goesOn: () => false, wake: new Signal(), signal: new AbortController().signal, heartbeatMs: 60_000 })
  t.equal((await reader.next()).value?.toString().slice(0, 10), 'xxxxxxxxxx')
  await appendFile(path, line.repeat(8 * 1024))
  await eventually('the log is cut', async () => await bytesOnDisk(path) <= 2 ** 21)
  const text = (await reader.next()).value?.toString() ?? ''
  t.match(text.slice(0, 200), /^\[berth: \d+ bytes/)
  let holes = 0
  for await (const block of reader) if (block.includes(0)) holes++
  t.equal(holes, 0)
})
