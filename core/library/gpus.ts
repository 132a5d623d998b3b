// How the GPUs of the host are counted by the code that gives them to VMs. Types only.

/** Whole GPUs that are registered, and shares of GPUs that can be shared. */
export interface GpuUsage {
  readonly mode: 'vgpu' | 'passthrough'
  readonly totalSlots: number
  readonly usedSlots: number
  readonly profiles: readonly { readonly name: string, readonly framebufferMb: number, readonly available: number }[]
  readonly devices: readonly { readonly name: string, readonly available: boolean }[]
}

export interface Gpus {
  /** null when the host has no GPU that an instance could have */
  gpus (): Promise<GpuUsage | null>
}

declare module '../plugins/manifest.ts' {
  interface Cradle {
    readonly gpus: Gpus
  }
}
