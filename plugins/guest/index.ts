// The plugin "guest": everything between a VMM's byte stream and the program inside the VM.
import { definePlugin } from '../../core/plugins/manifest.ts'
import { manifest } from './manifest.ts'
import { createGuestService, systemsFor } from './service.ts'

export const plugin = definePlugin({
  manifest,
  create (deps, config) {
    const { log } = deps
    const systems = systemsFor(deps, config)
    return {
      services: { guest: createGuestService(systems, log, config) },
      async start () {
        await systems.clean()
        if (!config.prepare) return
        // Not awaited: a download must not hold up the server. Whoever needs the system gets the same promise, or its error.
        systems.system().catch((error: unknown) => {
          log.warn({ err: error }, 'the guest system could not be prepared; the first VM will try again')
        })
        systems.headers.disk().catch((error: unknown) => {
          log.warn({ err: error }, 'the modules and headers of the kernel could not be prepared; the first VM that wants them will try again')
        })
      },
      stop: async () => { await systems.close() }
    }
  }
})
