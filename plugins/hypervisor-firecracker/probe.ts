// Finds Firecracker's version, and boots a kernel once.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { probing } from '../../core/library/vmm/command.ts'
import type { KvmProbeOptions, ProbedVmm } from '../../core/library/vmm/kvm-probe.ts'

export const FIRECRACKER: ProbedVmm = {
  name: 'Firecracker',
  version: /^Firecracker v([0-9]+\.[0-9]+\.[0-9]+)/,
  // 1.16.0 leaves a guest's vsock dead after a restore, and with it the agent.
  oldest: '1.16.1',
  whyOldest: 'the oldest that a guest can be reached in after a restore',
  boot: bootToPanic
}

/** The reset after the panic ends Firecracker. */
async function bootToPanic (kernel: string, { binary, bootTimeoutMs, commands }: KvmProbeOptions): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-firecracker-probe-'))
  try {
    const config = join(folder, 'config.json')
    await writeFile(config, JSON.stringify({
      'boot-source': { kernel_image_path: kernel, boot_args: 'console=ttyS0 quiet panic=-1 reboot=t' },
      'machine-config': { vcpu_count: 1, mem_size_mib: 128 },
      drives: []
    }))
    return (await commands.run('setpriv', probing(binary, ['--no-api', '--enable-pci', '--level', 'Warn', '--config-file', config]), { timeoutMs: bootTimeoutMs })).stdout
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
