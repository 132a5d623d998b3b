// The memory of the host, and how much of it could be used now, as the kernel counts it.
import { readFile } from 'node:fs/promises'

export interface HostMemory { readonly totalBytes: number, readonly availableBytes: number }

/** The host has little memory when less than this part of it is available. */
const PRESSURE_SHARE = 0.1

export function isShort ({ totalBytes, availableBytes }: HostMemory): boolean {
  return availableBytes < totalBytes * PRESSURE_SHARE
}

export async function memoryOfHost (): Promise<HostMemory> {
  const text = await readFile('/proc/meminfo', 'utf8')
  const bytes = (name: string): number => Number(new RegExp(`^${name}: +(\\d+) kB$`, 'm').exec(text)?.[1] ?? 0) * 1024
  return { totalBytes: bytes('MemTotal'), availableBytes: bytes('MemAvailable') }
}
