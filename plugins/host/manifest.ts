// What the host plugin needs and offers, and its settings.
import { Type } from 'typebox'
import { Duration } from '../../core/config/schema.ts'
import type { DepsOf, PluginManifest } from '../../core/plugins/manifest.ts'

const HostConfig = Type.Object({
  checksKept: Duration('10s', 'how long findings are given again before the host is looked at anew'),
  maxFollowers: Type.Integer({ default: 20, minimum: 1, maximum: 1000, description: 'Streams of the log that may be open at the same time; one key may have a quarter of them' })
}, { additionalProperties: false })

/** Reading the log tells more than all else here: names, addresses and errors of everything that the server does. */
export const SCOPES = { look: 'host:read', log: 'host-log:read' } as const

export const manifest = {
  id: 'host',
  provides: [],
  requires: ['database', 'disk', 'server', 'plugins', 'processes', 'recentLog'],
  scopes: [SCOPES.look, SCOPES.log],
  tags: [{ name: 'host', description: 'The host of the server: what is found of it, which processes the server keeps running, and its log', place: 140 }],
  config: HostConfig
} as const satisfies PluginManifest<typeof HostConfig>

export type Deps = DepsOf<typeof manifest>
