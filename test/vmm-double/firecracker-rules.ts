// Firecracker's API as its document says (src/firecracker/swagger/firecracker.yaml of release 1.16.1), as far as the driver may use it. What is not here is refused.
import { Type, type TObject, type TProperties } from 'typebox'
import type { Phase, Rule } from './rules.ts'

const closed = <P extends TProperties>(properties: P): TObject<P> => Type.Object(properties, { additionalProperties: false })
const optional = Type.Optional
const count = (minimum = 0, maximum = Number.MAX_SAFE_INTEGER): ReturnType<typeof Type.Integer> => Type.Integer({ minimum, maximum })
const word = (...values: string[]): ReturnType<typeof Type.String> => Type.String({ pattern: `^(${values.join('|')})$` })
const id = Type.String({ pattern: '^[A-Za-z0-9_]+$' })
const path = Type.String({ minLength: 1 })

const TokenBucket = closed({ size: count(), refill_time: count(), one_time_burst: optional(count()) })
const RateLimiter = closed({ bandwidth: optional(TokenBucket), ops: optional(TokenBucket) })

const before: readonly Phase[] = ['new', 'configured']
const after: readonly Phase[] = ['started']
const always: readonly Phase[] = ['new', 'configured', 'started']

export const FIRECRACKER_RULES: readonly Rule[] = [
  { method: 'GET', path: '/', phases: always },
  { method: 'GET', path: '/version', phases: always },
  {
    method: 'PUT',
    path: '/machine-config',
    phases: before,
    body: closed({ vcpu_count: count(1, 32), mem_size_mib: count(1), smt: optional(Type.Boolean()), track_dirty_pages: optional(Type.Boolean()), huge_pages: optional(word('None', '2M')) })
  },
  { method: 'PUT', path: '/boot-source', phases: before, body: closed({ kernel_image_path: path, initrd_path: optional(path), boot_args: optional(Type.String({ maxLength: 2047 })) }) },
  {
    method: 'PUT',
    path: '/drives/*',
    phases: before,
    named: 'drive_id',
    body: closed({
      drive_id: id,
      is_root_device: Type.Boolean(),
      partuuid: optional(Type.String()),
      cache_type: optional(word('Unsafe', 'Writeback')),
      is_read_only: Type.Boolean(),
      path_on_host: path,
      rate_limiter: optional(RateLimiter),
      io_engine: optional(word('Sync', 'Async'))
    })
  },
  { method: 'PATCH', path: '/drives/*', phases: after, named: 'drive_id', body: closed({ drive_id: id, path_on_host: optional(path), rate_limiter: optional(RateLimiter) }) },
  {
    method: 'PUT',
    path: '/network-interfaces/*',
    phases: before,
    named: 'iface_id',
    body: closed({
      iface_id: id,
      host_dev_name: Type.String({ minLength: 1, maxLength: 15 }),
      guest_mac: optional(Type.String({ pattern: '^[0-9a-f]{2}(:[0-9a-f]{2}){5}$' })),
      mtu: optional(count(68, 65_535)),
      rx_rate_limiter: optional(RateLimiter),
      tx_rate_limiter: optional(RateLimiter)
    })
  },
  { method: 'PUT', path: '/vsock', phases: before, body: closed({ guest_cid: count(3, 2 ** 32 - 1), uds_path: Type.String({ minLength: 1, maxLength: 107 }), vsock_id: optional(Type.String()) }) },
  { method: 'PUT', path: '/entropy', phases: before, body: closed({ rate_limiter: optional(RateLimiter) }) },
  { method: 'PUT', path: '/actions', phases: ['new', 'configured'], body: closed({ action_type: word('InstanceStart') }) },
  { method: 'PATCH', path: '/vm', phases: after, body: closed({ state: word('Paused', 'Resumed') }) },
  { method: 'PUT', path: '/snapshot/create', phases: after, body: closed({ snapshot_type: optional(word('Full', 'Diff')), snapshot_path: path, mem_file_path: path }) },
  {
    method: 'PUT',
    path: '/snapshot/load',
    phases: ['new'],
    body: closed({
      snapshot_path: path,
      mem_backend: closed({ backend_type: word('File', 'Uffd'), backend_path: path }),
      track_dirty_pages: optional(Type.Boolean()),
      resume_vm: optional(Type.Boolean()),
      network_overrides: optional(Type.Array(closed({ iface_id: id, host_dev_name: path }))),
      vsock_override: optional(closed({ uds_path: path })),
      clock_realtime: optional(Type.Boolean())
    })
  }
]
