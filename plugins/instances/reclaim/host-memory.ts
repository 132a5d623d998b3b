// How much memory the host has, and how much of it could be used now, as its kernel reckons.
import { readFile } from 'node:fs/promises'

export async function memoryOfHost (): Promise<{ readonly totalBytes: number, readonly availableBytes: number }> {
  const text = await readFile('/proc/meminfo', 'utf8')
  const bytes = (name: string): number => Number(new RegExp(`^${name}: +(\\d+) kB$`, 'm').exec(text)?.[1] ?? 0) * 1024
  return { totalBytes: bytes('MemTotal'), availableBytes: bytes('MemAvailable') }
}
