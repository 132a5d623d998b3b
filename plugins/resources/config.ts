// The settings of the plugin resources.
import { Type, type Static } from 'typebox'
import { Size } from '../../core/config/schema.ts'
import { oneOf } from '../../core/http/schemas.ts'

const closed = { additionalProperties: false, default: {} } as const
const SomeSize = (description: string) => Type.Optional(Type.String({ pattern: '^[0-9]+(\\.[0-9]+)?\\s?([KMGT]i?)?B?$', rule: 'must be a size such as 64KB, 512MB or 2GB', description }))
const Ratio = (value: number, description: string) => Type.Number({ default: value, exclusiveMinimum: 0, maximum: 1000, description })

export const ResourcesConfig = Type.Object({
  capacity: Type.Object({
    cpu: Type.Optional(Type.Integer({ minimum: 1, description: 'Processors for VMs; without it, those that the server may use' })),
    memory: SomeSize('Memory for VMs; without it, that of the host, or what its service, slice or container leaves the server of it'),
    disk: SomeSize('Disk space for images, volumes and writable disks; without it, the size of the data folder\'s file system'),
    diskIo: Type.Optional(Type.String({
      pattern: '^[0-9]+(\\.[0-9]+)? ?([KMGT]?bps|[KMGT]?B/s)$',
      rule: 'must be a rate such as 1GB/s or 500MB/s',
      description: 'What the disks can do. An instance without disk_io_bps gets a share of it by its vCPUs. Without it, disks have only the limits that are asked for'
    }))
  }, closed),
  reserve: Type.Object({
    cpu: Type.Integer({ minimum: 0, default: 0, description: 'Processors that VMs get nothing of' }),
    memory: Size('0B', 'Memory that stays with the host'),
    disk: Size('0B', 'Disk space that stays free')
  }, closed),
  oversubscription: Type.Object({
    cpu: Ratio(4, 'How many times the capacity may be promised to VMs: vCPUs seldom all work at once'),
    memory: Ratio(1, 'The same for memory'),
    disk: Ratio(1, 'For disk space'),
    network: Ratio(2, 'For bandwidth; its capacity is plugins.networking.config.bandwidth, else the speed of the uplink'),
    diskIo: Ratio(2, 'For the rate of disks')
  }, closed),
  overcommit: Type.Object({
    disk: Type.Boolean({ default: true, description: 'Whether writable disks of instances may be promised beyond what there is: none is made while the file system has too little left. false: each counts in full from its create on' })
  }, closed),
  cgroups: Type.Object({
    mode: oneOf(['auto', 'off'], { default: 'auto', description: 'auto: each VMM in a control group of its own where the host lets the server make some' }),
    parent: Type.Optional(Type.String({
      pattern: '^/?(?!\\.)[A-Za-z0-9_.@-]+(/(?!\\.)[A-Za-z0-9_.@-]+)*$',
      rule: 'must be a path in the control group hierarchy such as /berth',
      description: 'Group that those of VMs are made in, which the server may write; without it, its own, which systemd delegates to it'
    })),
    cpuPerVcpu: Type.Number({ default: 1, minimum: 0.01, maximum: 1, description: 'Processors that one vCPU may keep busy' }),
    cpuOverhead: Type.Number({ default: 0.5, minimum: 0, maximum: 64, description: 'Processors that a VMM may use beside its vCPUs' }),
    memoryOverhead: Size('512MB', 'Memory that a VMM may use beside its guest\'s'),
    pids: Type.Integer({ default: 256, minimum: 32, maximum: 32_768, description: 'Most threads and processes of a VMM, beside one per vCPU' })
  }, closed)
}, { additionalProperties: false })

export type ResourcesConfig = Static<typeof ResourcesConfig>
