// What the greeter needs and offers, and its settings.
import { Type, type PluginManifest } from 'berth/plugin'
import type { Greeter } from './greetings.ts'

const GreeterConfig = Type.Object({
  greeting: Type.String({ minLength: 1, maxLength: 40, default: 'Hello', description: 'First word of each greeting' }),
  most: Type.Integer({ minimum: 1, maximum: 100_000, default: 1000, description: 'People that it keeps; more are refused' })
}, { additionalProperties: false })

export const manifest = {
  id: 'greeter',
  provides: ['greeter'],
  requires: ['database', 'log', 'server'],
  scopes: ['greeting:read', 'greeting:write'],
  tags: [{ name: 'greetings', description: 'Who was greeted, and how' }],
  config: GreeterConfig,
  migrations: new URL('migrations/', import.meta.url)
} as const satisfies PluginManifest<typeof GreeterConfig>

declare module 'berth/plugin' {
  interface Cradle {
    readonly greeter: Greeter
  }
}
