// A state file of this driver's images: one line of ours about the captured VM, then Cloud Hypervisor's own `state.json`. Its numbers may be larger than JavaScript's, so it is kept as text.
import { RestoreFailed } from '../../core/library/vmm/errors.ts'
import { isRecord } from '../../core/json/is-record.ts'

const SECTOR = 512

export interface CapturedDisk {
  readonly id: string
  /** its file's size, bytes */
  readonly bytes: number
}

export interface Captured {
  readonly disks: readonly CapturedDisk[]
  /** bytes that the guest had given up; undefined: it had no balloon */
  readonly balloonBytes?: number
}

export function writeState (captured: Captured, state: string): string {
  return `${JSON.stringify(captured)}\n${state}`
}

/** @throws RestoreFailed */
export function readState (text: string): { readonly captured: Captured, readonly state: string } {
  const end = text.indexOf('\n')
  const captured = parse(text.slice(0, end))
  const disks = captured['disks']
  const balloonBytes = captured['balloonBytes']
  if (end < 0 || !Array.isArray(disks) || !disks.every(isDisk) || (balloonBytes !== undefined && typeof balloonBytes !== 'number')) throw RestoreFailed('the first line of its state says nothing of the VM')
  return { captured: { disks, ...balloonBytes === undefined ? {} : { balloonBytes } }, state: text.slice(end + 1) }
}

function isDisk (value: unknown): value is CapturedDisk {
  return isRecord(value) && typeof value['id'] === 'string' && typeof value['bytes'] === 'number'
}

/**
 * The state with other disk sizes: it contains the size of each disk, and a VM that is made from an image can have other disks, which its guest has not looked at yet.
 * @throws RestoreFailed when the state does not have the form that this driver knows
 */
export function withDiskSizes (state: string, sizes: ReadonlyMap<string, number>): string {
  if (sizes.size === 0) return state
  const whole = parse(state)
  const disks = recordIn(recordIn(recordIn(whole, 'snapshots'), 'device-manager'), 'snapshots')
  for (const [id, bytes] of sizes) {
    const data = recordIn(recordIn(disks, id), 'snapshot_data')
    const inner = data['state']
    const disk = parse(typeof inner === 'string' ? inner : '')
    const config = recordIn(disk, 'config')
    const capacity = Math.floor(bytes / SECTOR)
    // The state is text within text: only these two numbers of a disk are written anew, and all numbers of a disk are small.
    disk['disk_nsectors'] = capacity
    config['capacity'] = capacity
    data['state'] = JSON.stringify(disk)
  }
  return JSON.stringify(whole)
}

/** bytes of the kernel's `kvm_clock_data`, in the state's text: the clock, then flags */
const CLOCK = /("clock":\{"Kvm":\[(?:\d+,){8})(\d+)/
const KVM_CLOCK_REALTIME = 4

/**
 * The state with a clock that goes on where it was. Cloud Hypervisor has the kernel add the time for which the image lay there, and everything in the guest that waits for a time would have waited for it. Its
 * agent sets the time of day.
 */
export function withoutClockJump (state: string): string {
  const whole = parse(state)
  const data = whole['snapshot_data']
  const inner = isRecord(data) ? data['state'] : undefined
  // Numbers of the inner text stay as they are.
  if (!isRecord(data) || typeof inner !== 'string' || !CLOCK.test(inner)) return state
  data['state'] = inner.replace(CLOCK, (_all, before: string, flags: string) => `${before}${Number(flags) & ~KVM_CLOCK_REALTIME}`)
  return JSON.stringify(whole)
}

function recordIn (record: Record<string, unknown>, name: string): Record<string, unknown> {
  const found = record[name]
  if (!isRecord(found)) throw RestoreFailed(`the state has no "${name}" where Cloud Hypervisor has it`)
  return found
}

function parse (text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    if (isRecord(value)) return value
  } catch (error) {
    throw RestoreFailed.from(error, 'the state is no JSON')
  }
  throw RestoreFailed('the state is no JSON object')
}
