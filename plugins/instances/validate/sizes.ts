// Rules of sizes and rates.
import { formatRate, formatSize, parseRate, parseSize } from '../../../core/units.ts'
import type { BerthError } from '../../../core/errors/define.ts'
import type { Settings } from '../config.ts'
import {
  InvalidBandwidthDownload, InvalidBandwidthUpload, InvalidDiskIo, InvalidHotplugSize, InvalidOverlaySize, InvalidSize
} from '../errors.ts'
import type { InstanceSpec, NetworkSpec } from '../model/record.ts'
import type { CreateInstance } from '../api/schemas.ts'
import { printable } from './env.ts'

type Refuse = (place: string, rule: string) => BerthError

const MIB = 2 ** 20
/** guests take plugged-in memory in blocks of this size */
const HOTPLUG_BLOCK = 128 * MIB
// A VM with less hardly boots.
const MIN_DISK_IO_BPS = 64 * 1024
const MAX_DISK_IO_BPS = 2 ** 40

/** In whole MiB; `hotplugBytes` is absent where no memory is plugged in. */
export interface Sizes extends Pick<InstanceSpec, 'memoryBytes' | 'overlayBytes' | 'hotplugBytes' | 'diskIoBps'> {
  readonly bandwidth: Pick<NetworkSpec, 'downloadBps' | 'uploadBps'>
}

/** The sizes of a request, defaults filled in. @throws invalid_size and its like */
export function checkSizes (body: CreateInstance, settings: Settings): Sizes {
  const { defaults, limits } = settings
  const memory = body.size === undefined
    ? defaults.memoryBytes
    : checkMemory(sizeOf('size', body.size, InvalidSize), settings)
  const hotplug = body.hotplug_size === undefined ? 0 : sizeOf('hotplug_size', body.hotplug_size, InvalidHotplugSize)
  if (memory + roundUp(hotplug, HOTPLUG_BLOCK) > limits.maxMemoryBytes) {
    throw InvalidHotplugSize('hotplug_size', `together with size it must not be over ${formatSize(limits.maxMemoryBytes)}`)
  }
  const overlay = body.overlay_size === undefined
    ? defaults.overlayBytes
    : within(sizeOf('overlay_size', body.overlay_size, InvalidOverlaySize), limits.minOverlayBytes, limits.maxOverlayBytes, 'overlay_size', InvalidOverlaySize)
  const diskIoBps = rateOf('disk_io_bps', body.disk_io_bps, InvalidDiskIo)
  if (diskIoBps !== undefined && (diskIoBps < MIN_DISK_IO_BPS || diskIoBps > MAX_DISK_IO_BPS)) {
    throw InvalidDiskIo('disk_io_bps', `must be ${formatRate(MIN_DISK_IO_BPS)} to ${formatRate(MAX_DISK_IO_BPS)}`)
  }
  const downloadBps = rateOf('network.bandwidth_download', body.network?.bandwidth_download, InvalidBandwidthDownload)
  const uploadBps = rateOf('network.bandwidth_upload', body.network?.bandwidth_upload, InvalidBandwidthUpload)
  // VMMs take memory in whole MiB, ext4 disks in whole blocks; rounding up gives nobody less than they asked for.
  return { memoryBytes: roundUp(memory), overlayBytes: roundUp(overlay), ...(hotplug === 0 ? {} : { hotplugBytes: roundUp(hotplug, HOTPLUG_BLOCK) }), ...(diskIoBps === undefined ? {} : { diskIoBps }), bandwidth: { ...(downloadBps === undefined ? {} : { downloadBps }), ...(uploadBps === undefined ? {} : { uploadBps }) } }
}

/** The sizes for another plugin, which asks for memory only. @throws invalid_size */
export function sizesWithMemory (bytes: number, settings: Settings): Omit<Sizes, 'bandwidth'> {
  return { memoryBytes: roundUp(checkMemory(bytes, settings)), overlayBytes: roundUp(settings.defaults.overlayBytes) }
}

function checkMemory (bytes: number, { limits }: Settings): number {
  return within(bytes, limits.minMemoryBytes, limits.maxMemoryBytes, 'size', InvalidSize)
}

/** @throws `refuse` when the text is not a size */
export function sizeOf (place: string, text: string, refuse: Refuse): number {
  const bytes = parseSize(text)
  if (bytes === undefined) throw refuse(place, `"${printable(text)}" is not a size such as 1GB, 512MB or 2G`)
  return bytes
}

function within (bytes: number, least: number, most: number, place: string, refuse: Refuse): number {
  if (bytes < least) throw refuse(place, `must be at least ${formatSize(least)}`)
  if (bytes > most) throw refuse(place, `must be at most ${formatSize(most)}`)
  return bytes
}

function rateOf (place: string, text: string | undefined, refuse: Refuse): number | undefined {
  if (text === undefined) return undefined
  const rate = parseRate(text)
  if (rate === undefined || rate <= 0) throw refuse(place, `"${printable(text)}" is not a rate such as 100MB/s or 1Gbps`)
  return rate
}

function roundUp (bytes: number, unit = MIB): number {
  return Math.ceil(bytes / unit) * unit
}
