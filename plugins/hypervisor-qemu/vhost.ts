// Whether the host's kernel (vhost-net) can move a VM's packets rather than QEMU: tested by opening the device as the VM's user would.
import { access } from 'node:fs/promises'
import type { VmSpec } from '../../core/library/hypervisor.ts'
import type { HostCommands } from '../../core/contracts/services.ts'
import { hasCode } from '../../core/errors/system-code.ts'
import { HostCommandFailed } from '../../core/process/run.ts'
import { unprivileged } from '../../core/library/vmm/command.ts'

const VHOST_NET = '/dev/vhost-net'
const TIMEOUT_MS = 10_000

export type VhostProbe = (spec: Pick<VmSpec, 'identity' | 'network'>) => Promise<boolean>

/**
 * The answer is kept: it depends on whether a VM has a user of its own, not on which user.
 * Under emulation vhost-net is not used: copying packets is not the bottleneck there.
 */
export function createVhostProbe (commands: HostCommands, device = VHOST_NET): VhostProbe {
  const answers = new Map<boolean, Promise<boolean>>()
  return async ({ identity, network }) => {
    const isOwnUser = identity !== undefined
    const known = answers.get(isOwnUser)
    if (known !== undefined) return await known
    const answer = probe(commands, device, { identity, network })
    answers.set(isOwnUser, answer)
    // A failed attempt to find out is no answer.
    answer.catch(() => answers.delete(isOwnUser))
    return await answer
  }
}

async function probe (commands: HostCommands, device: string, spec: Pick<VmSpec, 'identity' | 'network'>): Promise<boolean> {
  try {
    await access(device)
    const [file = '', ...args] = [...await unprivileged('kvm', spec), 'dd', 'if=/dev/null', `of=${device}`, 'conv=notrunc,nocreat', 'status=none']
    await commands.run(file, args, { timeoutMs: TIMEOUT_MS })
    return true
  } catch (error) {
    if (hasCode(error, 'ENOENT') || (error instanceof HostCommandFailed && error.failure.reason === 'exit')) return false
    throw error
  }
}
