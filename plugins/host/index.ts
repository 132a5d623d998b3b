// The plugin "host": what the server finds of its host, which processes it keeps running there, and the newest lines of its log.
import { durationMs } from '../../core/config/quantities.ts'
import { definePlugin } from '../../core/plugins/manifest.ts'
import { Checks } from './checks.ts'
import { Log } from './log/log.ts'
import { manifest } from './manifest.ts'
import { Processes } from './processes.ts'
import { hostRoutes } from './routes.ts'

export const plugin = definePlugin({
  manifest,
  create ({ database, disk, server: { dataDir }, plugins, processes, recentLog }, { checksKept, maxFollowers }) {
    const checks = new Checks({ database, disk, plugins, dataDir, keptMs: durationMs(checksKept) })
    return {
      start: async () => { await checks.open() },
      routes: hostRoutes({ checks, processes: new Processes(processes), log: new Log(recentLog, maxFollowers) }),
      stop: async () => { await checks.close() }
    }
  }
})
