// What the console needs and offers, and its settings.
import { Type, type Static } from 'typebox'
import { Duration } from '../../core/config/schema.ts'
import type { DepsOf, PluginManifest } from '../../core/plugins/manifest.ts'
import type { Sessions } from './sessions/sessions.ts'

declare module '../../core/plugins/manifest.ts' {
  interface Cradle {
    /** this plugin's own service */
    readonly consoleSessions: Sessions
  }
}

export const ConsoleConfig = Type.Object({
  sessionLifetime: Duration('12h', 'after so long one has to log in again, whatever one does'),
  maxSessions: Type.Integer({ default: 10, minimum: 1, maximum: 1000, description: 'Sessions that one key may have at the same time; one more ends the oldest' })
}, { additionalProperties: false })

export type ConsoleConfig = Static<typeof ConsoleConfig>

export const manifest = {
  id: 'console',
  provides: ['consoleSessions'],
  requires: ['apiKeys', 'authenticators'],
  config: ConsoleConfig
} as const satisfies PluginManifest<typeof ConsoleConfig>

export type Deps = DepsOf<typeof manifest>
