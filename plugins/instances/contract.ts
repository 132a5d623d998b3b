// What other plugins may know of instances. Types only.

export type InstanceState = 'Created' | 'Initializing' | 'Running' | 'Paused' | 'Shutdown' | 'Stopped' | 'Standby' | 'Unknown'

declare module '../../core/contracts/services.ts' {
  interface DomainEvents {
    'instance.state': { readonly id: string, readonly from: InstanceState, readonly to: InstanceState }
    'instance.deleted': { readonly id: string }
  }
}
