// The plugin "console": pages for the browser, on top of the API, and sessions for users who log in there.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { durationMs } from '../../core/config/quantities.ts'
import { definePlugin, SkipPlugin } from '../../core/plugins/manifest.ts'
import { manifest } from './manifest.ts'
import { PAGES, pageRoutes } from './pages/routes.ts'
import { Attempts } from './sessions/attempts.ts'
import { sessionAuthenticator } from './sessions/authenticator.ts'
import { sessionRoutes } from './sessions/routes.ts'
import { Sessions } from './sessions/sessions.ts'
import { Tickets } from './sessions/tickets.ts'

export const plugin = definePlugin({
  manifest,
  create ({ apiKeys, authenticators }, { sessionLifetime, maxSessions }) {
    const sessions = new Sessions({ apiKeys, lifetimeMs: durationMs(sessionLifetime), maxPerKey: maxSessions })
    const tickets = new Tickets()
    let forget = (): void => undefined
    return {
      start: async () => {
        if (!existsSync(join(PAGES, 'index.html'))) throw new SkipPlugin('its pages were not built: `npm run build` makes them')
        forget = authenticators.add(sessionAuthenticator(sessions, tickets))
      },
      routes: async (app) => {
        await app.register(pageRoutes())
        await app.register(sessionRoutes({ apiKeys, sessions, tickets, attempts: new Attempts() }))
      },
      stop: async () => {
        forget()
        sessions.endAll()
      }
    }
  }
})
