// The settings of the plugin builds.
import { Type, type Static } from 'typebox'
import { Duration, LongDuration, Size } from '../../core/config/schema.ts'

export const BuildsConfig = Type.Object({
  concurrency: Type.Integer({ minimum: 1, maximum: 64, default: 2, description: 'builds at a time; others wait' }),
  maxQueued: Type.Integer({ minimum: 1, maximum: 10_000, default: 100, description: 'builds that may wait' }),
  maxPerKey: Type.Integer({ minimum: 1, maximum: 10_000, default: 50, description: 'builds of one API key that may wait or run' }),
  maxSource: Size('512MB', 'largest source archive'),
  secretsDir: Type.String({ default: '', pattern: '^(|/.*)$', rule: 'must be an absolute path, or be empty for none', description: 'folder of the secrets that builds may use, one file each, named as the secret' }),
  vcpus: Type.Integer({ minimum: 1, maximum: 256, default: 2, description: 'vCPUs of a build that asks for none' }),
  maxVcpus: Type.Integer({ minimum: 1, maximum: 256, default: 8, description: 'most vCPUs that a build may ask for' }),
  memory: Size('2GB', 'memory of a build that asks for none'),
  maxMemory: Size('16GB', 'most memory that a build may ask for'),
  timeout: Duration('10m', 'how long a build may take that asks for nothing'),
  maxTimeout: Duration('2h', 'the longest time that a build may ask for'),
  heartbeat: Duration('30s', 'after so long without anything to tell, an event stream tells that it is alive'),
  maxLog: Size('16MB', 'most output of a build that is kept'),
  keepFinished: Type.Integer({ minimum: 1, maximum: 100_000, default: 1000, description: 'builds that are over of which record and log are kept' }),
  keep: LongDuration('720h', 'how long they are kept at most'),
  disk: Size('10GB', 'disk of a build without a builder; it takes only the space that is written'),
  builderDisk: Size('10GB', 'cache disk of a builder that asks for no size'),
  maxBuilderDisk: Size('200GB', 'largest cache disk of a builder'),
  builderImage: Type.String({ default: '', description: 'image of the VMs of builds; empty: the one that this server makes when it first needs it' }),
  prepare: Type.Boolean({ default: false, description: 'whether that image is made when the server starts, so that the first build need not wait for it' }),
  bootTimeout: Duration('2m', 'how long the VM of a build may take until it answers'),
  imageTimeout: Duration('10m', 'how long a pushed image may take until it is ready for instances')
}, { additionalProperties: false })

export type BuildsConfig = Static<typeof BuildsConfig>
