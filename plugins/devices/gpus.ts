// GPUs as GET /resources shows them. Pure.
import type { GpuUsage } from '../../core/library/gpus.ts'
import type { MdevType } from './host/mdev.ts'
import type { DeviceRecord } from './record.ts'

/** Shares, where there are GPUs that can be shared; else the registered GPUs, each as a whole. */
export function gpuUsage (types: readonly MdevType[], mdevs: number, devices: readonly DeviceRecord[]): GpuUsage | null {
  const gpus = devices.filter(({ type }) => type === 'gpu').map(({ name, instanceId }) => ({ name, available: instanceId === null }))
  if (types.length > 0) {
    const names = [...new Set(types.map(({ name }) => name))].sort()
    const profiles = names.map((name) => {
      const same = types.filter((type) => type.name === name)
      return { name, framebufferMb: Math.max(...same.map(({ framebufferMb }) => framebufferMb)), available: same.reduce((sum, { available }) => sum + available, 0) }
    })
    // How many more shares fit depends on which are made; at best as many as of the smallest profile.
    return { mode: 'vgpu', totalSlots: mdevs + Math.max(...profiles.map(({ available }) => available)), usedSlots: mdevs, profiles, devices: gpus }
  }
  if (gpus.length === 0) return null
  return { mode: 'passthrough', totalSlots: gpus.length, usedSlots: gpus.filter(({ available }) => !available).length, profiles: [], devices: gpus }
}
