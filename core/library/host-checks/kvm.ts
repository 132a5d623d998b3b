// Checks whether KVM works: a program of a few bytes runs in a VM. Opening /dev/kvm proves little, for example in a VM whose host has no nested virtualisation.
import { mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Look } from './check.ts'
import { findTool, runTool, type ToolPath } from './tools.ts'

const ROM_BYTES = 65536
/** the address at which a processor starts, 16 bytes below the end */
const RESET_VECTOR = ROM_BYTES - 16
/** mov al, 0x10; out 0xf4, al; hlt. The device at 0xf4 ends QEMU with 2 · 0x10 + 1. */
const PROGRAM = Buffer.from([0xb0, 0x10, 0xe6, 0xf4, 0xf4])
const RAN = 33

export async function kvm (place: ToolPath & { readonly scratch?: string }): Promise<Look> {
  try {
    await (await open('/dev/kvm', 'r+')).close()
  } catch (error) {
    return await notOpened(error instanceof Error && 'code' in error ? error.code : undefined)
  }
  const qemu = await findTool('qemu-system-x86_64', place)
  if (qemu === undefined) return { verdict: 'warning', found: '/dev/kvm can be opened; whether it works shows with QEMU alone', remedy: 'apt-get install qemu-system-x86' }
  const { code, said } = await runFirstProgram(qemu, 'kvm', place.scratch)
  if (code === RAN) return { verdict: 'ok', found: '/dev/kvm can be used: a VM has run its first program' }
  return { verdict: 'warning', found: `/dev/kvm can be opened, and a VM does not run: ${said}`, remedy: 'on a host that is a VM itself: nested virtualisation for it; else see dmesg. VMs are emulated meanwhile, which is slower' }
}

async function notOpened (code: unknown): Promise<Look> {
  if (code === 'EACCES' || code === 'EPERM') return { verdict: 'warning', found: '/dev/kvm is forbidden to this user', remedy: 'run the server as root, or add its user to the group kvm' }
  const hasFlag = /^flags\s*:.*\b(?:vmx|svm)\b/m.test(await readFile('/proc/cpuinfo', 'utf8'))
  return {
    verdict: 'warning',
    found: code === 'ENOENT' ? 'there is no /dev/kvm: VMs are emulated, which is slower' : `/dev/kvm: ${String(code)}`,
    remedy: hasFlag ? 'modprobe kvm_intel, or kvm_amd' : 'turn virtualisation on in the firmware, or nested virtualisation for this VM'
  }
}

/** Runs the program in a VM of 1 MiB. @param scratch where its file may be for a moment */
export async function runFirstProgram (qemu: string, accelerator: 'kvm' | 'tcg', scratch = tmpdir()): Promise<{ readonly code: number | undefined, readonly said: string }> {
  const folder = await mkdtemp(join(scratch, '.berth-doctor-'))
  try {
    const rom = Buffer.alloc(ROM_BYTES)
    PROGRAM.copy(rom, RESET_VECTOR)
    await writeFile(join(folder, 'rom'), rom)
    return await runTool(qemu, ['-machine', `pc,accel=${accelerator}`, '-m', '1', '-nodefaults', '-no-user-config', '-display', 'none', '-bios', join(folder, 'rom'), '-device', 'isa-debug-exit,iobase=0xf4,iosize=4'])
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
