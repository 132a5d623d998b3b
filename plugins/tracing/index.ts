// The plugin "tracing": sends traces to a collector, by OpenTelemetry. OpenTelemetry is loaded only when an endpoint is configured.
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
