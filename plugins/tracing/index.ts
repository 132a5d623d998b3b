// The plugin "tracing": traces for a collector, by OpenTelemetry. What it needs of that is loaded when an endpoint is configured, and not before.
import { definePlugin, SkipPlugin } from '../../core/plugins/manifest.ts'
import type { Exporting } from './exporting.ts'
import { manifest, type Deps } from './manifest.ts'

const running = new WeakMap<Deps, Exporting>()

export const plugin = definePlugin({
  manifest,

  async start (deps, config) {
    if (config.endpoint === undefined) throw new SkipPlugin('plugins.tracing.config.endpoint names no collector')
    const { startExporting } = await import('./exporting.ts')
    running.set(deps, await startExporting(deps, { ...config, endpoint: config.endpoint }))
  },

  async stop (deps) {
    await running.get(deps)?.close()
    running.delete(deps)
  }
})
