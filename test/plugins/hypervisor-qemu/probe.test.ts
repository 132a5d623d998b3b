// How the driver finds out what runs guests: by booting, and once per boot of the host.
import { existsSync } from 'node:fs'
import { chmod, chown, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import type { HypervisorProbe } from '../../../core/library/hypervisor.ts'
import { createProbeCache } from '../../../core/library/vmm/probe-cache.ts'
import { createProbeMemory } from '../../../core/library/vmm/probe-memory.ts'
import { readIdentity } from '../../../core/process/identity.ts'
import { bootToPanic, bootUnderKvm, probeQemu, type ProbeOptions } from '../../../plugins/hypervisor-qemu/probe.ts'
import { eventually } from '../../helpers/eventually.ts'
import { testFolder } from '../../helpers/folder.ts'
import { commands, guestSystem, makeDriver } from './machine.ts'

const how = { binary: 'qemu-system-x86_64', kvmCpuModel: 'host', bootTimeoutMs: 5000, commands }
t.setTimeout(1_400_000)

await t.test('the guests\' kernel passes the boot test where it can run', async (t) => {
  const { kernel } = await guestSystem()
  t.equal(await bootToPanic(kernel, ['-accel', 'tcg'], { ...how, bootTimeoutMs: 60_000 }), undefined)
})

await t.test('a processor that only resets does not pass', async (t) => {
  const folder = testFolder(t)
  // A multiboot image whose first instruction faults without an interrupt table: the machine resets, and QEMU exits with 0.
  const image = Buffer.alloc(8192)
  const loadAt = 0x100000
  const words = [0x1badb002, 0x10000, (-(0x1badb002 + 0x10000)) >>> 0, loadAt, loadAt, 0, 0, loadAt + 64]
  words.forEach((word, index) => image.writeUInt32LE(word, index * 4))
  image.set([0x0f, 0x01, 0x1d, 0x80, 0x00, 0x10, 0x00, 0x0f, 0x0b], 64)
  const path = join(folder, 'faulting')
  await writeFile(path, image)
  t.match(await bootToPanic(path, ['-accel', 'tcg'], { ...how, bootTimeoutMs: 60_000 }), /did not boot/)
})

const kvm = existsSync('/dev/kvm') ? false : 'this host has no /dev/kvm'
await t.test('KVM either boots the kernel, and is what VMs get, or is refused with a reason, within its time', { skip: kvm }, async (t) => {
  const { kernel } = await guestSystem()
  const start = Date.now()
  const problem = await bootUnderKvm(kernel, how)
  t.ok(Date.now() - start < 10_000)
  if (problem !== undefined) t.match(problem, /\/dev\/kvm is present, but .+/)
  const probe = await probeQemu({ ...how, board: 'q35', accelerator: 'kvm', kernel: async () => ({ path: kernel, version: '1' }), cache: { recall: async () => problem } })
  t.equal(probe.acceleration === 'kvm', problem === undefined)
  t.comment(problem ?? 'KVM works')
})

/** What this host has in the place of /dev/kvm, and of QEMU: one whose VM does not answer. */
async function hanging (folder: string, mode: number, group = 0): Promise<ProbeOptions & { readonly pidFile: string }> {
  const [kvm, binary, pidFile] = [join(folder, 'kvm'), join(folder, 'qemu'), join(folder, 'pid')]
  await writeFile(kvm, '')
  await chmod(kvm, mode)
  if (group !== 0) await chown(kvm, 0, group)
  await writeFile(binary, `#!/bin/sh\ncase "$1$2" in --version) echo "QEMU emulator version 7.2.22";; -machinehelp) echo "q35 PC";; *) echo $$ > ${pidFile}; exec sleep 1000;; esac\n`, { mode: 0o755 })
  return { ...how, board: 'q35', accelerator: 'auto', binary, kvm, pidFile, bootTimeoutMs: 500, kernel: async () => ({ path: '/k', version: '1' }), cache: { recall: async (_, find) => await find() } }
}

await t.test('KVM that hangs costs its time and no more: VMs are emulated, the reason is told, and what hung is ended', async (t) => {
  const { pidFile, ...options } = await hanging(testFolder(t), 0o666)
  t.match(await probeQemu(options), { supported: true, acceleration: 'tcg', reason: /did not boot under KVM within 500 ms/ })
  const pid = Number(await readFile(pidFile, 'utf8'))
  await eventually('it has ended', async () => readIdentity(pid) === undefined)
  t.match(await probeQemu({ ...options, accelerator: 'kvm' }), { supported: false, reason: /asks for KVM, and .+ did not boot/ })
})

await t.test('KVM that is missing is told, and nothing is booted for it', async (t) => {
  const options = await hanging(testFolder(t), 0o666)
  t.match(await probeQemu({ ...options, kvm: '/nonexistent/kvm' }), { supported: true, acceleration: 'tcg', reason: 'this host has no /dev/kvm' })
  t.notOk(existsSync(options.pidFile))
})

const isRoot = process.getuid?.() === 0
await t.test('KVM that VMs\' own users may not use is told with the command that lets them; a group is enough', { skip: isRoot ? false : 'only root gives VMs users of their own' }, async (t) => {
  const options = await hanging(testFolder(t), 0o600)
  t.match(await probeQemu(options), { supported: true, acceleration: 'tcg', reason: /only root may use .+chgrp kvm/ })
  t.notOk(existsSync(options.pidFile))
  t.match(await probeQemu(await hanging(testFolder(t), 0o660, 61_000)), { reason: /did not boot/ }, 'it is tried')
})

await t.test('KVM that the server may not open is told', { skip: isRoot ? 'root may open all' : false }, async (t) => {
  t.match(await probeQemu(await hanging(testFolder(t), 0o000)), { supported: true, acceleration: 'tcg', reason: 'the server may not open /dev/kvm' })
})

await t.test('QEMU that is missing is told with its package', async (t) => {
  const driver = await makeDriver({ binary: '/nonexistent/qemu-system-x86_64' })
  t.match(await driver.probe(), { supported: false, reason: /install the package qemu-system-x86/ })
})

await t.test('the configuration can ask for emulation', async (t) => {
  t.match(await (await makeDriver({ accelerator: 'tcg' })).probe(), { supported: true, acceleration: 'tcg', reason: /configuration/ })
})

await t.test('KVM that was asked for and does not work is no hypervisor', { skip: kvm }, async (t) => {
  const probe = await probeQemu({ ...how, board: 'q35', accelerator: 'kvm', kernel: async () => ({ path: '/k', version: '1' }), cache: { recall: async () => 'it does not boot' } } satisfies ProbeOptions)
  t.match(probe, { supported: false, reason: /asks for KVM, and .+/ })
})

await t.test('a success is kept for the same QEMU and kernel, and only for them; a problem is not, since a busy host may be the reason', async (t) => {
  const file = join(testFolder(t), 'deep', 'probe.json')
  const asked: string[] = []
  const recall = (key: string, problem: string | undefined) => createProbeCache(file).recall(key, async () => { asked.push(key); return problem })
  t.equal(await recall('7.2 k1', 'no'), 'no')
  t.equal(await recall('7.2 k1', undefined), undefined)
  t.equal(await recall('7.2 k1', 'no'), undefined)
  t.equal(await recall('7.2 k2', undefined), undefined)
  t.equal(await recall('7.2 k2', 'no'), undefined)
  t.same(asked, ['7.2 k1', '7.2 k1', '7.2 k2'])
  const kept = await readFile(file, 'utf8')
  await writeFile(file, kept.replace(/[0-9a-f-]{36}/, 'another boot of the host'))
  t.equal(await recall('7.2 k2', 'no'), 'no')
  // What a server of before has left.
  await writeFile(file, kept.replace('7.2 k2"', '7.2 k3","problem":"no"'))
  t.equal(await recall('7.2 k3', undefined), undefined)
  await writeFile(file, 'rubbish')
  t.equal(await recall('7.2 k2', undefined), undefined)
})

await t.test('what a probe found is asked for once, and a problem again after ten minutes; VMs that can run meanwhile do not wait for that, and go on when it finds nothing better', async (t) => {
  const minutes = (count: number): number => count * 60_000
  let time = 0
  let next: HypervisorProbe | Error = { supported: false, reason: 'it took too long' }
  let asked = 0
  const memory = createProbeMemory(async () => {
    asked++
    if (next instanceof Error) throw next
    return await Promise.resolve(next)
  }, () => time)
  t.equal((await memory.probe()).reason, 'it took too long')
  const emulated = next = { supported: true, version: '7', acceleration: 'tcg', reason: 'KVM took too long' } as const
  time = minutes(9)
  t.equal((await memory.probe()).supported, false)
  time = minutes(11)
  t.same(await Promise.all([memory.probe(), memory.probe()]), [emulated, emulated])
  t.equal(asked, 2)

  for (const worse of [{ supported: false, reason: 'it took too long' }, new Error('out of descriptors')]) {
    next = worse
    time += minutes(11)
    const before = asked
    t.same(await memory.probe(), emulated)
    await eventually('it was asked again', () => asked > before)
    t.same([await memory.probe(), await memory.probe(), asked - before], [emulated, emulated, 1])
  }

  const best = next = { supported: true, version: '7', acceleration: 'kvm' } as const
  time += minutes(11)
  t.same(await memory.probe(), emulated)
  await eventually('it is found', async () => (await memory.probe()).acceleration === 'kvm')
  next = new Error('it is not asked')
  time += minutes(100)
  t.same(await memory.probe(), best)

  next = { ...best, version: '8' }
  memory.forget('8')
  t.match(await memory.probe(), { version: '8' })
})

await t.test('a probe that fails is no answer', async (t) => {
  let next: HypervisorProbe | Error = new Error('out of descriptors')
  const memory = createProbeMemory(async () => {
    if (next instanceof Error) throw next
    return await Promise.resolve(next)
  })
  await t.rejects(memory.probe(), { message: 'out of descriptors' })
  next = { supported: true }
  t.same(await memory.probe(), { supported: true })
})

await t.test('a cache that cannot be read is an error and not an answer', async (t) => {
  const folder = testFolder(t)
  await mkdir(join(folder, 'probe.json'))
  await t.rejects(createProbeCache(join(folder, 'probe.json')).recall('k', async () => undefined), { code: 'EISDIR' })
})
