// The shapes of requests and answers about instances. Rules that a shape cannot say are in validate/.
import { Type, type Static } from 'typebox'
import { listQuery, NameQuery, TagsQuery } from '../../../core/http/list.ts'
import { mapOf, nullable, oneOf, ResourceName, Tags, Timestamp } from '../../../core/http/schemas.ts'
import { HypervisorName } from '../../../core/library/hypervisor-name.ts'
import type { InstanceState } from '../contract.ts'
import { AutoStandbySchema } from '../auto-standby/schemas.ts'
import { Lifetime } from '../expiry/schemas.ts'
import { HealthCheckSchema, HealthStatus } from '../health/schemas.ts'
import { SourceView } from './source-schema.ts'
import { PhaseFields } from '../phases/schemas.ts'
import { RestartPolicySchema, RestartStatus } from '../restart/schemas.ts'
import { WakePolicySchema } from '../waking/schemas.ts'
import { MEDIATED_MODES } from '../../../proxy/contract/modes.ts'

const closed = { additionalProperties: false } as const

export const STATES = [
  'Created', 'Initializing', 'Running', 'Paused', 'Shutdown', 'Stopped', 'Standby', 'Unknown'
] as const satisfies readonly InstanceState[]

// NUL cannot pass through exec(2), so no argument and no value may hold one.
const Text = Type.String({ maxLength: 131_071, pattern: '^[^\\u0000]*$' })
const Argv = Type.Array(Text, { maxItems: 4096 })
const SizeText = (description: string) => Type.String({ minLength: 1, maxLength: 32, description })

/** Environment names are checked in validate/env.ts, which can name the bad one. */
const Env = mapOf(Text, { description: 'Environment variables, as the guest sees them' })

const SnapshotCompression = Type.Object({
  enabled: Type.Boolean(),
  algorithm: Type.Optional(oneOf(['zstd', 'lz4'], { description: 'zstd when absent' })),
  level: Type.Optional(Type.Integer({ minimum: 0, maximum: 19, description: 'zstd 1 to 19, lz4 0 to 9' }))
}, closed)

const SnapshotPolicySchema = Type.Object({
  compression: Type.Optional(SnapshotCompression),
  standby_compression_delay: Type.Optional(Type.String({ minLength: 1, maxLength: 64, description: 'Go duration: how long the image of a standby stays uncompressed, unless its request says otherwise' }))
}, closed)

const VolumeMount = Type.Object({
  volume_id: Type.String({ minLength: 1, maxLength: 191 }),
  mount_path: Type.String({ minLength: 1, maxLength: 1024 }),
  readonly: Type.Optional(Type.Boolean()),
  overlay: Type.Optional(Type.Boolean({ description: 'Writes go to a disk of this instance; needs readonly' })),
  overlay_size: Type.Optional(SizeText('Size of that disk; needed with overlay'))
}, closed)

export const AttachVolume = Type.Object({
  mount_path: Type.String({ minLength: 1, maxLength: 1024, description: 'Where the guest finds it' }),
  readonly: Type.Optional(Type.Boolean({ description: 'false when absent: this instance writes it, and nobody else has it' }))
}, { ...closed, $id: 'AttachVolume' })
export type AttachVolume = Static<typeof AttachVolume>

/** `:volumeId` is an id or a name. */
export const InstanceVolumeRef = Type.Object({
  id: Type.String({ minLength: 1, maxLength: 191 }),
  volumeId: Type.String({ minLength: 1, maxLength: 191 })
}, closed)

export const Credential = Type.Object({
  source: Type.Object({ env: Type.String({ description: 'Name of the variable in env that holds the real value' }) }, closed),
  inject: Type.Array(Type.Object({
    hosts: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 255 }), { maxItems: 256 })),
    as: Type.Object({
      header: Type.String({ minLength: 1, maxLength: 128 }),
      format: Type.String({ minLength: 1, maxLength: 4096, description: 'Must contain ${value}' })
    }, closed)
  }, closed), { maxItems: 64 })
}, closed)

const PortNumber = (description: string) => Type.Integer({ minimum: 1, maximum: 65_535, description })

const Port = Type.Object({
  instance_port: PortNumber('Where the program listens'),
  host_port: Type.Optional(PortNumber('A free one is chosen when absent')),
  address: Type.Optional(Type.String({ minLength: 7, maxLength: 15, description: 'IPv4 address of the host; 127.0.0.1 when absent, 0.0.0.0: all of its addresses' })),
  protocol: Type.Optional(oneOf(['tcp', 'udp'], { description: 'tcp when absent' }))
}, closed)

const NetworkRequest = Type.Object({
  enabled: Type.Optional(Type.Boolean()),
  bandwidth_download: Type.Optional(SizeText('Rate such as 100MB/s or 1Gbps')),
  bandwidth_upload: Type.Optional(SizeText('Rate such as 100MB/s or 1Gbps')),
  egress: Type.Optional(Type.Object({
    enabled: Type.Optional(Type.Boolean()),
    enforcement: Type.Optional(Type.Object({ mode: Type.Optional(oneOf(MEDIATED_MODES)) }, closed))
  }, closed))
}, closed)

export const CreateInstance = Type.Object({
  image: Type.String({ minLength: 1, maxLength: 512, description: 'OCI image reference' }),
  name: ResourceName,
  cmd: Type.Optional(Argv),
  entrypoint: Type.Optional(Argv),
  env: Type.Optional(Env),
  credentials: Type.Optional(mapOf(Credential)),
  devices: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 191 }), { maxItems: 64 })),
  gpu: Type.Optional(Type.Object({ profile: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })) }, closed)),
  disk_io_bps: Type.Optional(SizeText('Rate such as 100MB/s')),
  hotplug_size: Type.Optional(SizeText('Additional memory')),
  hypervisor: Type.Optional(HypervisorName()),
  network: Type.Optional(NetworkRequest),
  overlay_size: Type.Optional(SizeText('Size of the writable disk')),
  platform: Type.Optional(Type.String({ minLength: 1, maxLength: 64, description: 'os/arch or os/arch/variant; only what this host runs, which is the default' })),
  size: Type.Optional(SizeText('Memory')),
  vcpus: Type.Optional(Type.Integer({ minimum: 1 })),
  skip_guest_agent: Type.Optional(Type.Boolean({ description: 'exec, cp and stat do not work then' })),
  skip_kernel_headers: Type.Optional(Type.Boolean()),
  snapshot_policy: Type.Optional(SnapshotPolicySchema),
  tags: Type.Optional(Tags),
  ...Lifetime,
  restart_policy: Type.Optional(RestartPolicySchema),
  health_check: Type.Optional(HealthCheckSchema),
  auto_standby: Type.Optional(AutoStandbySchema),
  wake: Type.Optional(WakePolicySchema),
  ports: Type.Optional(Type.Array(Port, { maxItems: 1024, description: 'Ports of the host that lead to the instance; needs the plugin ports' })),
  volumes: Type.Optional(Type.Array(VolumeMount, { maxItems: 64 }))
}, { ...closed, $id: 'CreateInstance' })
export type CreateInstance = Static<typeof CreateInstance>

export const StartInstance = Type.Object({
  cmd: Type.Optional(Argv),
  entrypoint: Type.Optional(Argv)
}, { ...closed, $id: 'StartInstance' })
export type StartInstance = Static<typeof StartInstance>

export const UpdateInstance = Type.Object({
  env: Type.Optional(mapOf(Text, { minProperties: 1, description: 'Other values for variables that credentials take their values from; those that are not named keep theirs. The guest notices nothing' })),
  ...Lifetime,
  restart_policy: Type.Optional(RestartPolicySchema),
  health_check: Type.Optional(HealthCheckSchema),
  auto_standby: Type.Optional(AutoStandbySchema),
  wake: Type.Optional(WakePolicySchema)
}, { ...closed, minProperties: 1, $id: 'UpdateInstance' })
export type UpdateInstance = Static<typeof UpdateInstance>

export const StandbyInstance = Type.Object({
  compression: Type.Optional(SnapshotCompression),
  compression_delay: Type.Optional(Type.String({ minLength: 1, maxLength: 64, description: 'Go duration' }))
}, { ...closed, $id: 'StandbyInstance' })
export type StandbyInstance = Static<typeof StandbyInstance>

export const TARGET_STATES = ['Stopped', 'Standby', 'Running'] as const satisfies readonly InstanceState[]

const CopyEnv = mapOf(Text, { description: 'In place of the source\'s variables of these names, and beside its others: values of credentials hold for the copy from its first moment, other variables for every program that starts in it. One that goes on from memory keeps what it has' })

export const ForkInstance = Type.Object({
  name: ResourceName,
  from_running: Type.Optional(Type.Boolean({ description: 'Allows a Running source, which is paused meanwhile' })),
  target_state: Type.Optional(oneOf(TARGET_STATES, { description: 'That of the source when absent' })),
  env: Type.Optional(CopyEnv)
}, { ...closed, $id: 'ForkInstance' })
export type ForkInstance = Static<typeof ForkInstance>

export const InstanceView = Type.Object({
  id: Type.String(),
  name: Type.String(),
  image: Type.String(),
  state: oneOf(STATES),
  created_at: Timestamp,
  expires_at: nullable(Type.String({ format: 'date-time', description: 'When it is deleted by itself; null: never' })),
  hypervisor: Type.String(),
  platform: Type.String(),
  vcpus: Type.Integer(),
  size: Type.String(),
  hotplug_size: Type.Optional(Type.String()),
  overlay_size: Type.String(),
  disk_io_bps: Type.Optional(Type.String()),
  env: Type.Optional(Type.Record(Type.String(), Type.String())),
  tags: Type.Optional(Type.Record(Type.String(), Type.String())),
  network: Type.Object({
    enabled: Type.Boolean(),
    name: Type.Optional(Type.String()),
    ip: Type.Optional(nullable(Type.String())),
    mac: Type.Optional(nullable(Type.String())),
    bandwidth_download: Type.Optional(Type.String()),
    bandwidth_upload: Type.Optional(Type.String())
  }, closed),
  volumes: Type.Array(VolumeMount),
  gpu: Type.Optional(Type.Object({ profile: Type.String(), mdev_uuid: Type.String() }, closed)),
  source: Type.Optional(SourceView),
  has_snapshot: Type.Boolean(),
  snapshot_policy: Type.Optional(SnapshotPolicySchema),
  restart_policy: Type.Optional(RestartPolicySchema),
  restart_status: Type.Optional(RestartStatus),
  health_check: Type.Optional(HealthCheckSchema),
  health_status: Type.Optional(HealthStatus),
  auto_standby: Type.Optional(AutoStandbySchema),
  wake: Type.Optional(WakePolicySchema),
  ...PhaseFields,
  started_at: nullable(Timestamp),
  stopped_at: nullable(Timestamp),
  exit_code: nullable(Type.Integer()),
  exit_message: Type.Optional(Type.String()),
  state_error: nullable(Type.String({ description: 'Why the state is Unknown; null in every other state' })),
  restore_error: Type.Optional(Type.String({ description: 'Why the last restore from the image failed: in Standby, until the next restore' }))
}, { ...closed, $id: 'Instance' })
export type InstanceView = Static<typeof InstanceView>

export const InstanceList = Type.Array(InstanceView)

export const ListInstancesQuery = Type.Object({
  ...listQuery(['created_at', 'name'], 'created_at'),
  ...TagsQuery,
  ...NameQuery,
  state: Type.Optional(oneOf(STATES))
}, closed)

/** `:id` is an id, a name, or the beginning of an id that only one instance has. */
export const InstanceRef = Type.Object({ id: Type.String({ minLength: 1, maxLength: 191 }) }, closed)

export const DeleteQuery = Type.Object({
  graceful_shutdown: Type.Optional(Type.Boolean({ description: 'true when absent: the program gets SIGTERM and a moment' }))
}, closed)

export const StatQuery = Type.Object({
  path: Type.String({ minLength: 1, maxLength: 4096, pattern: '^[^\\u0000]*$' }),
  follow_links: Type.Optional(Type.Boolean())
}, closed)

export const EgressQuery = Type.Object({
  after: Type.Optional(Type.Integer({ minimum: 0, description: '`next` of an earlier answer; from the oldest that is kept when absent' })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, description: '100 when absent' }))
}, closed)

export const EgressLog = Type.Object({
  mode: oneOf(['none', ...MEDIATED_MODES], { description: 'none: directly out, of which nothing is written down' }),
  credentials: Type.Array(Type.String(), { description: 'Names of the credentials, as the guest sees them' }),
  entries: Type.Array(Type.Object({
    seq: Type.Integer(),
    time: Timestamp,
    revision: Type.Integer({ description: 'Of the policy by which it was judged' }),
    protocol: oneOf(['http/1.1', 'h2', 'websocket', 'tls', 'tcp', 'dns']),
    host: Type.String(),
    port: Type.Integer(),
    method: Type.Optional(Type.String()),
    path: Type.Optional(Type.String({ description: 'Without the query' })),
    status: Type.Optional(Type.Integer()),
    injected: Type.Array(Type.String(), { description: 'Names of the credentials that were put in' }),
    reason: Type.Optional(Type.String({ description: 'Why it was refused or failed' })),
    bytes_in: Type.Integer(),
    bytes_out: Type.Integer(),
    duration_ms: Type.Number()
  }, closed), { description: 'One for each request, oldest first' }),
  next: Type.Integer({ description: '`after` of the next question' })
}, { ...closed, $id: 'EgressLog' })
export type EgressLog = Static<typeof EgressLog>

export const EgressTrial = Type.Object({
  url: Type.String({ minLength: 1, maxLength: 2000, description: 'What a guest would ask for', examples: ['https://api.example.com/v1/models'] }),
  mode: Type.Optional(oneOf(MEDIATED_MODES, { description: 'all when absent' })),
  credentials: Type.Optional(mapOf(Credential, { description: 'As in a create; no value is needed' }))
}, { ...closed, $id: 'EgressTrial' })
export type EgressTrial = Static<typeof EgressTrial>

export const EgressVerdict = Type.Object({
  decision: oneOf(['allow', 'refuse', 'direct'], { description: 'direct: it goes out beside the proxy, as the mode leaves such ports alone' }),
  reason: Type.Optional(Type.String({ description: 'Why it would be refused: as in the log of requests, or port_not_mediated' })),
  message: Type.Optional(Type.String({ description: 'The same as a sentence' })),
  host: Type.String(),
  port: Type.Integer(),
  protocol: oneOf(['http', 'https']),
  needs_address: Type.Boolean({ description: 'The host is a name: what it resolves to is judged as well, when a request is made' }),
  injected: Type.Array(Type.String(), { description: 'Names of the credentials that would be put in' }),
  headers: Type.Array(Type.String(), { description: 'Headers that they would be put into' })
}, { ...closed, $id: 'EgressVerdict' })
export type EgressVerdict = Static<typeof EgressVerdict>

export const ForwardQuery = Type.Object({
  port: Type.Integer({ minimum: 1, maximum: 65_535, description: 'At which a program in the guest listens' })
}, closed)

export const PathInfo = Type.Object({
  exists: Type.Boolean(),
  is_file: Type.Optional(Type.Boolean()),
  is_dir: Type.Optional(Type.Boolean()),
  is_symlink: Type.Optional(Type.Boolean()),
  link_target: Type.Optional(Type.String()),
  mode: Type.Optional(Type.Integer()),
  size: Type.Optional(Type.Integer()),
  error: Type.Optional(Type.String())
}, { ...closed, $id: 'PathInfo' })
export type PathInfo = Static<typeof PathInfo>

/** Both fields are plain strings here, since their faults have codes of their own: invalid_state and invalid_timeout. */
export const WaitQuery = Type.Object({
  state: Type.Optional(Type.String({ maxLength: 64, description: `One of ${STATES.join(', ')}` })),
  timeout: Type.Optional(Type.String({ maxLength: 64, description: 'Go duration, 60s when absent or empty; of a longer one than 5m, 5m' }))
}, closed)

export const WaitAnswer = Type.Object({
  state: oneOf(STATES),
  timed_out: Type.Boolean(),
  state_error: Type.Optional(nullable(Type.String())),
  restore_error: Type.Optional(Type.String({ description: 'As of the instance' }))
}, { ...closed, $id: 'WaitForState' })
export type WaitAnswer = Static<typeof WaitAnswer>

export const LOG_SOURCES = ['app', 'vmm', 'hypeman', 'berth'] as const

export const LogsQuery = Type.Object({
  source: Type.Optional(oneOf(LOG_SOURCES, { description: 'app: the program; vmm: guest kernel and VMM; berth (or hypeman): operations of the server' })),
  tail: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000, description: '100 when absent' })),
  follow: Type.Optional(Type.Boolean())
}, closed)

export const InstanceStats = Type.Object({
  instance_id: Type.String(),
  instance_name: Type.String(),
  allocated_vcpus: Type.Integer(),
  allocated_memory_bytes: Type.Integer(),
  cpu_seconds: Type.Number(),
  memory_rss_bytes: Type.Integer(),
  memory_vms_bytes: Type.Integer(),
  network_rx_bytes: Type.Integer(),
  network_tx_bytes: Type.Integer(),
  memory_utilization_ratio: Type.Number(),
  vm_kept: Type.Boolean({ description: 'It is in Standby, and its VM is still there, paused, for a restore soon; the figures of memory and processor are that VM\'s' })
}, { ...closed, $id: 'InstanceStats' })
export type InstanceStats = Static<typeof InstanceStats>
