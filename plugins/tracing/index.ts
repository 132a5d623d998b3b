// The plugin "tracing": traces for a collector, by OpenTelemetry. What it needs of that is loaded when an endpoint is configured, and not before.
import { definePlugin, SkipPlugin } from '../../core/plugins/manifest.ts'
import type { Exporting } from './exporting.ts'
import { manifest } from './manifest.ts'

export const plugin = definePlugin({
  manifest,

  create (deps, config) {
    const { endpoint } = config
    if (endpoint === undefined) throw new SkipPlugin('plugins.tracing.config.endpoint names no collector')
    let exporting: Exporting | undefined
    return {
      async start () {
        const { startExporting } = await import('./exporting.ts')
        exporting = await startExporting(deps, { ...config, endpoint })
      },
      stop: async () => { await exporting?.close() }
    }
  }
})
