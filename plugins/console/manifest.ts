// What the console needs and offers, and its settings.
import { Type } from 'typebox'
import { LongDuration } from '../../core/config/schema.ts'
import type { PluginManifest } from '../../core/plugins/manifest.ts'

const ConsoleConfig = Type.Object({
  sessionLifetime: LongDuration('12h', 'after so long one has to log in again, whatever one does'),
  maxSessions: Type.Integer({ default: 10, minimum: 1, maximum: 1000, description: 'Sessions that one key may have at the same time; one more ends the oldest' })
}, { additionalProperties: false })

export const manifest = {
  id: 'console',
  provides: [],
  requires: ['apiKeys', 'authenticators'],
  config: ConsoleConfig
} as const satisfies PluginManifest<typeof ConsoleConfig>
