// A memory image as a driver describes it, for what only reads the description.
import type { MemoryImage } from '../../core/library/hypervisor.ts'

export function imageOf (driver: string, version: number, shape: MemoryImage['shape']): MemoryImage {
  return { driver, version, vmmVersion: '1', key: 'key', shape, vcpus: 1, memoryBytes: 1, stateBytes: 1, memoryStoredBytes: 1, capturedAt: '2026-01-01T00:00:00.000Z' }
}
