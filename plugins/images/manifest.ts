// What the images plugin needs and offers, and its settings.
import { Type, type Static } from 'typebox'
import { Duration, Size } from '../../core/config/schema.ts'
import type { DepsOf, PluginManifest } from '../../core/plugins/manifest.ts'
import { ImageFailed, ImageNotReady, PULL_ERRORS } from './errors.ts'

export const ImagesConfig = Type.Object({
  defaultRegistry: Type.String({ default: 'docker.io', minLength: 1, description: 'Registry of names that are written without a host' }),
  insecureRegistries: Type.Array(Type.String({ minLength: 1 }), { default: [], description: 'Hosts (host or host:port) that may be spoken to over plain HTTP or with an unknown certificate; loopback hosts always may' }),
  allowPrivate: Type.Array(Type.String({ pattern: '^[0-9a-fA-F.:]+(/[0-9]{1,3})?$', rule: 'must be an address or a network such as 192.168.0.0/16' }), {
    default: [],
    description: 'Private networks that registries, and what they refer to, may be in; those in insecureRegistries may be in any. Metadata services never'
  }),
  credentialsFile: Type.Optional(Type.String({ minLength: 1, description: 'Docker config.json with the logins of the server itself' })),
  pullConcurrency: Type.Integer({ default: 2, minimum: 1, maximum: 64, description: 'Images that are pulled and converted at the same time' }),
  maxPulls: Type.Integer({ default: 1000, minimum: 1, maximum: 100_000, description: 'Pulls by POST /images that are not over' }),
  maxPullsPerKey: Type.Integer({ default: 100, minimum: 1, maximum: 100_000, description: 'How many of them may be those of one API key' }),
  minFree: Size('1GB', 'space that a pull must leave free on the disk of the data folder'),
  resolveWait: Duration('4s', 'how long POST /images waits for the registry before it answers 202 with an empty digest'),
  pullTimeout: Duration('1h', 'longest time for each step of one pull'),
  compression: Type.Unsafe<'none' | 'lz4'>({ type: 'string', enum: ['none', 'lz4'], default: 'none', description: 'How root file systems are stored: none is faster to make and to read, lz4 smaller' })
}, { additionalProperties: false })

export type ImagesConfig = Static<typeof ImagesConfig>

export const manifest = {
  id: 'images',
  provides: ['images', 'imageSources'],
  requires: ['log', 'database', 'events', 'jobs', 'commands', 'disk', 'metrics', 'server', 'apiKeys'],
  optional: ['registry', 'journal'],
  emits: ['image.changed'],
  listens: ['image.changed', 'registry.pushed'],
  scopes: ['image:read', 'image:write', 'image:delete'],
  tags: [{ name: 'images', description: 'OCI images that instances are made of', place: 40 }],
  errors: [...PULL_ERRORS, ImageNotReady, ImageFailed],
  hostPackages: [
    { name: 'skopeo', commands: ['skopeo'], oldest: '1.9.3', need: 'server', use: 'images' },
    { name: 'umoci', commands: ['umoci'], oldest: '0.4.7', need: 'server', use: 'images' }
  ],
  config: ImagesConfig,
  migrations: new URL('migrations/', import.meta.url)
} as const satisfies PluginManifest<typeof ImagesConfig>

export type Deps = DepsOf<typeof manifest>
