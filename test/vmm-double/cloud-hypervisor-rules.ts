// Cloud Hypervisor's API as its document says (vmm/src/api/openapi/cloud-hypervisor.yaml of release v53.0), as far as the driver may use it. What is not here is refused, also what the document allows.
import { Type, type TObject, type TProperties } from 'typebox'
import type { Phase, Rule } from './rules.ts'

const closed = <P extends TProperties>(properties: P): TObject<P> => Type.Object(properties, { additionalProperties: false })
const optional = Type.Optional
const count = (minimum = 0, maximum = Number.MAX_SAFE_INTEGER): ReturnType<typeof Type.Integer> => Type.Integer({ minimum, maximum })
const word = (...values: string[]): ReturnType<typeof Type.String> => Type.String({ pattern: `^(${values.join('|')})$` })
const id = Type.String({ minLength: 1 })
const path = Type.String({ minLength: 1 })

const TokenBucket = closed({ size: count(), refill_time: count(), one_time_burst: optional(count()) })
const RateLimiter = closed({ bandwidth: optional(TokenBucket), ops: optional(TokenBucket) })

const Disk = closed({
  path,
  readonly: optional(Type.Boolean()),
  direct: optional(Type.Boolean()),
  num_queues: optional(count(1)),
  queue_size: optional(count(1)),
  rate_limiter_config: optional(RateLimiter),
  id: optional(id),
  // What the document allows is longer; a virtio disk tells 20 bytes of it.
  serial: optional(Type.String({ maxLength: 20 })),
  rate_limit_group: optional(id),
  backing_files: optional(Type.Boolean()),
  sparse: optional(Type.Boolean()),
  // The document lets it be absent; then the disk is looked at, and its first sector cannot be written.
  image_type: word('Raw')
})

const Net = closed({
  tap: Type.String({ minLength: 1, maxLength: 15 }),
  mac: optional(Type.String({ pattern: '^[0-9a-f]{2}(:[0-9a-f]{2}){5}$' })),
  mtu: optional(count(68, 65_535)),
  num_queues: optional(count(2)),
  queue_size: optional(count(1)),
  id: optional(id),
  rate_limiter_config: optional(RateLimiter)
})

export const VM_CONFIG = closed({
  cpus: closed({ boot_vcpus: count(1), max_vcpus: count(1) }),
  memory: closed({ size: count(1), hotplug_size: optional(count()), hotplugged_size: optional(count()), hotplug_method: optional(word('Acpi', 'VirtioMem')), shared: optional(Type.Boolean()), prefault: optional(Type.Boolean()) }),
  payload: closed({ kernel: path, initramfs: optional(path), cmdline: optional(Type.String()) }),
  rate_limit_groups: optional(Type.Array(closed({ id, rate_limiter_config: RateLimiter }))),
  disks: optional(Type.Array(Disk)),
  net: optional(Type.Array(Net)),
  balloon: optional(closed({ id: optional(id), size: count(), deflate_on_oom: optional(Type.Boolean()), free_page_reporting: optional(Type.Boolean()) })),
  serial: optional(closed({ mode: word('Off', 'Null', 'Tty', 'File', 'Pty', 'Socket'), file: optional(path), socket: optional(path) })),
  console: optional(closed({ mode: word('Off', 'Null', 'Tty', 'File', 'Pty'), file: optional(path) })),
  devices: optional(Type.Array(closed({ path, id: optional(id) }))),
  vsock: optional(closed({ id: optional(id), cid: count(3), socket: Type.String({ minLength: 1, maxLength: 107 }) }))
})

const before: readonly Phase[] = ['new']
const created: readonly Phase[] = ['configured']
const running: readonly Phase[] = ['started']
const always: readonly Phase[] = ['new', 'configured', 'started']

export const CLOUD_HYPERVISOR_RULES: readonly Rule[] = [
  { method: 'GET', path: '/vmm.ping', phases: always },
  { method: 'GET', path: '/vm.info', phases: ['configured', 'started'] },
  { method: 'PUT', path: '/vm.create', phases: before, body: VM_CONFIG },
  { method: 'PUT', path: '/vm.boot', phases: created },
  { method: 'PUT', path: '/vm.pause', phases: running },
  { method: 'PUT', path: '/vm.resume', phases: running },
  { method: 'PUT', path: '/vm.resize', phases: running, body: closed({ desired_vcpus: optional(count(1)), desired_ram: optional(count()), desired_balloon: optional(count()) }) },
  { method: 'PUT', path: '/vm.add-disk', phases: running, body: Disk },
  { method: 'PUT', path: '/vm.remove-device', phases: running, body: closed({ id }) },
  { method: 'PUT', path: '/vm.snapshot', phases: running, body: closed({ destination_url: Type.String({ pattern: '^file://.' }) }) },
  {
    method: 'PUT',
    path: '/vm.restore',
    phases: before,
    body: closed({ source_url: Type.String({ pattern: '^file://.' }), prefault: optional(Type.Boolean()), memory_restore_mode: optional(word('Copy', 'OnDemand')), resume: optional(Type.Boolean()) })
  }
]
