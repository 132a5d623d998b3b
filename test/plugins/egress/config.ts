// A whole config of the plugin, of which a test says only what it is about.
import type { EgressConfig } from '../../../plugins/egress/manifest.ts'

export function configOf (changes: Partial<EgressConfig> = {}): EgressConfig {
  return { proxy: { manage: true, workers: 1, startTimeout: '30s' }, ports: { http: [80], https: [443] }, roots: [], allowPrivate: [], deny: [], passTraceparent: false, limits: { connections: 1024, requests: 256 }, audit: { maxFileSize: '16MB', files: 8 }, ...changes }
}
