// The shapes of requests and answers about builds.
import { Type, type Static } from 'typebox'
import { listQuery, TagsQuery } from '../../core/http/list.ts'
import { nullable, oneOf, Tags, Timestamp } from '../../core/http/schemas.ts'
import { MEDIATED_MODES } from '../../proxy/contract/modes.ts'

const closed = { additionalProperties: false } as const

const COMPONENT = '[a-z0-9]+((\\.|_|__|-+)[a-z0-9]+)*'
const RepositoryPart = (description: string) => Type.String({
  minLength: 1,
  maxLength: 128,
  pattern: `^${COMPONENT}(/${COMPONENT})*$`,
  rule: 'must be a part of a repository name: lower case letters and digits, with inner dots, dashes or underscores, and slashes between parts',
  description
})
/** A plain file name that can be used in a Dockerfile. */
const SecretId = Type.String({ minLength: 1, maxLength: 128, pattern: '^[A-Za-z0-9_][A-Za-z0-9_.-]*$', rule: 'must have 1 to 128 letters, digits, dots, dashes or underscores, and begin with a letter, a digit or an underscore' })
const VARIABLE_RULE = 'must be the name of a variable: letters, digits and underscores, beginning with no digit'
const BuildArgs = Type.Unsafe<Record<string, string>>({
  type: 'object',
  description: 'Values of the ARGs of the Dockerfile, as a JSON object of strings. They are no secrets: the image\'s history shows them',
  maxProperties: 200,
  propertyNames: { type: 'string', maxLength: 128, pattern: '^[A-Za-z_][A-Za-z0-9_]*$', rule: VARIABLE_RULE },
  additionalProperties: { type: 'string' }
})

/** The form after it has been read: its `source` is then the hash of the source. */
export const CreateBuild = Type.Object({
  source: Type.Unsafe<string>({ type: 'string', format: 'binary', description: 'The source: a tar archive, compressed with gzip' }),
  dockerfile: Type.Optional(Type.String({ minLength: 1, description: 'Content of the Dockerfile, when it is not in the source' })),
  dockerfile_path: Type.Optional(Type.String({ minLength: 1, maxLength: 1024, description: 'Path of the Dockerfile in the source; `Dockerfile` when absent' })),
  base_image_digest: Type.Optional(Type.String({ pattern: '^sha256:[0-9a-f]{64}$', rule: 'must be sha256: and 64 hexadecimal digits', description: 'What the base image must be' })),
  builder_id: Type.Optional(Type.String({ minLength: 1, maxLength: 63, description: 'The builder whose cache disk is used' })),
  cache_scope: Type.Optional(RepositoryPart('Layers are taken from, and put into, the cache of this name; of no use with is_admin_build')),
  global_cache_key: Type.Optional(RepositoryPart('Layers are taken from this cache that all share')),
  is_admin_build: Type.Optional(Type.Boolean({ description: 'Layers are taken from the shared cache and put into it, and into no other; needs the scope `build:admin`' })),
  image_name: Type.Optional(Type.String({ minLength: 1, maxLength: 400, description: 'Repository, and perhaps tag, that the image gets; `builds/<id>` when absent' })),
  secrets: Type.Optional(Type.Array(Type.Object({ id: SecretId }, closed), { maxItems: 50, description: 'Secrets of this server that the build may mount, as a JSON array' })),
  tags: Type.Optional(Tags),
  cpus: Type.Optional(Type.Integer({ minimum: 1, description: 'vCPUs of the build' })),
  memory_mb: Type.Optional(Type.Integer({ minimum: 256, description: 'Memory of the build in MiB' })),
  timeout_seconds: Type.Optional(Type.Integer({ minimum: 1, description: 'How long building and pushing may take' })),
  network_mode: Type.Optional(oneOf(['isolated', 'egress'], { description: 'Whether its steps reach the network; `egress` when absent, on a server without the plugin networking `isolated`' })),
  egress_mode: Type.Optional(oneOf(MEDIATED_MODES, { description: 'Sends what its steps send through the egress proxy' })),
  build_args: Type.Optional(BuildArgs),
  target: Type.Optional(Type.String({ minLength: 1, maxLength: 128, pattern: '^[A-Za-z0-9][A-Za-z0-9_.-]*$', rule: 'must be the name or the number of a stage', description: 'The stage to build; the last one when absent' })),
  no_cache: Type.Optional(Type.Boolean({ description: 'Runs every step anew' }))
}, { ...closed, $id: 'CreateBuild' })
export type CreateBuild = Static<typeof CreateBuild>

const BUILD_STATUSES = ['queued', 'building', 'pushing', 'ready', 'failed', 'cancelled'] as const

const Provenance = Type.Object({
  base_image_digest: Type.Optional(Type.String()),
  source_hash: Type.Optional(Type.String({ description: 'SHA-256 of the uploaded archive' })),
  lockfile_hashes: Type.Optional(Type.Record(Type.String(), Type.String(), { description: 'SHA-256 by path in the source' })),
  buildkit_version: Type.Optional(Type.String({ description: 'Only of a build that BuildKit did: this server builds with buildah, whose version is builder_version' })),
  builder: Type.Optional(Type.String({ description: 'The program that has built it' })),
  builder_version: Type.Optional(Type.String()),
  timestamp: Type.Optional(Timestamp)
}, { ...closed, $id: 'BuildProvenance' })

export const BuildView = Type.Object({
  id: Type.String(),
  status: oneOf(BUILD_STATUSES),
  queue_position: nullable(Type.Integer({ description: '1 for the oldest build that waits' })),
  builder_id: nullable(Type.String()),
  builder_instance_id: nullable(Type.String({ description: 'The VM that does it' })),
  image_digest: nullable(Type.String({ description: 'Of the manifest in the registry, once it is ready' })),
  image_ref: nullable(Type.String({ description: 'The image for instances, once it is ready' })),
  error: nullable(Type.String()),
  provenance: Provenance,
  created_at: Timestamp,
  started_at: nullable(Timestamp),
  completed_at: nullable(Timestamp),
  duration_ms: nullable(Type.Integer()),
  tags: Type.Optional(Type.Record(Type.String(), Type.String()))
}, { ...closed, $id: 'Build' })
export type BuildView = Static<typeof BuildView>

export const BuildList = Type.Array(BuildView)

export const ListBuildsQuery = Type.Object({ ...listQuery(['created_at'], '-created_at'), ...TagsQuery, status: Type.Optional(oneOf(BUILD_STATUSES, { description: 'Only builds with this status' })) }, closed)
export type ListBuildsQuery = Static<typeof ListBuildsQuery>

export const BuildPath = Type.Object({ id: Type.String({ minLength: 1, maxLength: 191 }) }, closed)

export const EventsQuery = Type.Object({
  follow: Type.Optional(Type.Boolean({ description: 'Goes on until the build is over' }))
}, closed)
