// Finds Cloud Hypervisor's version, and boots a kernel once.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { hasCode } from '../../core/errors/system-code.ts'
import { probing } from '../../core/library/vmm/command.ts'
import type { KvmProbeOptions, ProbedVmm } from '../../core/library/vmm/kvm-probe.ts'

const LOOK_PAUSE_MS = 20

export const CLOUD_HYPERVISOR: ProbedVmm = {
  name: 'Cloud Hypervisor',
  version: /^cloud-hypervisor v([0-9]+\.[0-9]+(?:\.[0-9]+)?)/,
  // Before 52 a restore does not reset a guest's connections, and its agent waits on a dead one; 53 is the version whose API document the driver follows.
  oldest: '53.0',
  whyOldest: 'the oldest that the driver knows, and older ones leave a guest\'s connections hanging after a restore',
  boot: bootToPanic
}

/** Cloud Hypervisor boots again after the reset that follows a panic, so it is ended once the panic is there. */
async function bootToPanic (kernel: string, { binary, bootTimeoutMs, commands }: KvmProbeOptions): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-cloud-hypervisor-probe-'))
  const serial = join(folder, 'serial')
  const said = new AbortController()
  try {
    const args = ['--kernel', kernel, '--cmdline', 'console=ttyS0 quiet panic=0', '--cpus', 'boot=1', '--memory', 'size=128M', '--serial', `file=${serial}`, '--console', 'off']
    const run = commands.run('setpriv', probing(binary, args), { timeoutMs: bootTimeoutMs, signal: said.signal })
    const ended = run.then(() => true, () => true)
    while (!await Promise.race([ended, sleep(LOOK_PAUSE_MS, false)])) {
      if (!(await textOf(serial)).includes('Kernel panic')) continue
      said.abort()
      await ended
    }
    if (!said.signal.aborted) await run
    return await textOf(serial)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function textOf (file: string): Promise<string> {
  return await readFile(file, 'latin1').catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return ''
    throw error
  })
}
