// The settings of builds as numbers, computed from the configuration once.
import { durationMs, sizeBytes } from '../../core/config/quantities.ts'
import type { BuildsConfig } from './config.ts'

const MIB = 2 ** 20
const GIB = 2 ** 30

export interface BuildSettings {
  readonly concurrency: number
  readonly maxQueued: number
  readonly maxPerKey: number
  readonly maxSourceBytes: number
  /** as it is written, for messages */
  readonly maxSource: string
  readonly secretsDir: string
  readonly vcpus: { readonly default: number, readonly max: number }
  readonly memoryMb: { readonly default: number, readonly max: number }
  readonly timeoutSeconds: { readonly default: number, readonly max: number }
  readonly heartbeatMs: number
  readonly maxLogBytes: number
  readonly keepFinished: number
  readonly keepMs: number
  /** whether the image of builds' VMs is made at the start */
  readonly prepare: boolean
  readonly builderDiskGb: { readonly default: number, readonly max: number }
}

/** @throws an error that names the settings that contradict each other */
export function settingsOf (config: BuildsConfig): BuildSettings {
  const settings: BuildSettings = {
    concurrency: config.concurrency,
    maxQueued: config.maxQueued,
    maxPerKey: config.maxPerKey,
    maxSourceBytes: sizeBytes(config.maxSource),
    maxSource: config.maxSource,
    secretsDir: config.secretsDir,
    vcpus: { default: config.vcpus, max: config.maxVcpus },
    memoryMb: { default: megabytes(config.memory), max: megabytes(config.maxMemory) },
    timeoutSeconds: { default: seconds(config.timeout), max: seconds(config.maxTimeout) },
    heartbeatMs: durationMs(config.heartbeat),
    maxLogBytes: sizeBytes(config.maxLog),
    keepFinished: config.keepFinished,
    keepMs: durationMs(config.keep),
    prepare: config.prepare,
    builderDiskGb: { default: gigabytes('builderDisk', config.builderDisk), max: gigabytes('maxBuilderDisk', config.maxBuilderDisk) }
  }
  for (const [name, { default: value, max }] of Object.entries({ vcpus: settings.vcpus, memory: settings.memoryMb, timeout: settings.timeoutSeconds, builderDisk: settings.builderDiskGb })) {
    if (value > max) throw new Error(`plugins.builds.config.${name}: is more than its maximum`)
  }
  return settings
}

/** @throws naming the setting when the size is not whole GB */
export function gigabytes (name: string, size: string): number {
  const count = sizeBytes(size) / GIB
  if (!Number.isInteger(count) || count < 1) throw new Error(`plugins.builds.config.${name}: must be whole GB`)
  return count
}

function megabytes (size: string): number {
  return Math.floor(sizeBytes(size) / MIB)
}

function seconds (duration: string): number {
  return Math.max(1, Math.floor(durationMs(duration) / 1000))
}
