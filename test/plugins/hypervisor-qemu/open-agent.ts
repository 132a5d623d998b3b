// Waits for the guest's port of a QEMU that was started without the driver.
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { connectUnix } from '../../../core/process/unix-socket.ts'
import { AGENT_SOCKET } from '../../../plugins/hypervisor-qemu/args.ts'

/** Polled, since QEMU says nowhere when its socket is there. */
export async function openAgent (directory: string): Promise<Socket> {
  for (let tries = 0; ; tries++) {
    try {
      return await connectUnix(directory, AGENT_SOCKET)
    } catch (error) {
      if (tries === 2000) throw error
      await sleep(2)
    }
  }
}
