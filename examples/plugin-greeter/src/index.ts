// The plugin "greeter": what Berth imports, by `plugins.greeter.module`.
import { definePlugin } from 'berth/plugin'
import { Greetings } from './greetings.ts'
import { manifest } from './manifest.ts'
import { greetingRoutes } from './routes.ts'

export const plugin = definePlugin({
  manifest,

  // Makes its services, once all that it requires has started. What is made here and not among `services` stays its own.
  create ({ database, log, server }, { greeting, most }) {
    const greetings = new Greetings(database, { hostId: server.hostId, greeting, most })
    return {
      services: { greeter: greetings },
      // Opens, recovers, reconciles. `signal` aborts when it takes too long or the server is told to stop.
      async start (signal) {
        signal.throwIfAborted()
        log.info({ plugin: manifest.id, greeted: await greetings.count() }, 'greeter is ready')
      },
      routes: greetingRoutes(greetings)
    }
  }
})
