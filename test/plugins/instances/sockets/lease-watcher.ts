// A plugin that sees what keeps instances awake.
import { Type } from 'typebox'
import { definePlugin, type Plugin } from '../../../../core/plugins/manifest.ts'
import type { Leases } from '../../../../plugins/instances/life/leases.ts'

export interface LeaseWatcher {
  readonly plugin: Plugin
  /** Why an instance is kept awake, by its id; nothing before the server runs. */
  readonly reasons: Leases['reasons']
}

export function leaseWatcher (): LeaseWatcher {
  let reasons: Leases['reasons'] = () => []
  return {
    plugin: definePlugin({
      manifest: { id: 'watcher', provides: [], requires: ['leases'], config: Type.Object({}, { additionalProperties: false }) },
      create ({ leases }: { readonly leases: Leases }) {
        reasons = leases.reasons
        return {}
      }
    }),
    reasons: (id) => reasons(id)
  }
}
