// When the host has little memory.
import type { HostMemory } from '../../../core/process/host-memory.ts'

/** The host has little memory when less than this part of it is available. */
const PRESSURE_SHARE = 0.1

export function isShort ({ totalBytes, availableBytes }: HostMemory): boolean {
  return availableBytes < totalBytes * PRESSURE_SHARE
}
