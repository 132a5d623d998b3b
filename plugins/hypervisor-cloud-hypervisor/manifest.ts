// What the Cloud Hypervisor driver needs and offers, and its settings.
import type { Static } from 'typebox'
import { restVmmConfig } from '../../core/library/vmm/settings.ts'
import type { PluginManifest } from '../../core/plugins/manifest.ts'

export const HypervisorCloudHypervisorConfig = restVmmConfig('Cloud Hypervisor', 'cloud-hypervisor')

export type HypervisorCloudHypervisorConfig = Static<typeof HypervisorCloudHypervisorConfig>

export const manifest = {
  id: 'hypervisor-cloud-hypervisor',
  provides: [],
  requires: ['commands', 'log', 'server'],
  // A server without VMs has no guest, and this plugin has nothing to do there.
  optional: ['guest'],
  fills: { slot: 'hypervisors', name: 'cloud-hypervisor' },
  config: HypervisorCloudHypervisorConfig
} as const satisfies PluginManifest<typeof HypervisorCloudHypervisorConfig>
