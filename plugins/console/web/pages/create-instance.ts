// The form for a new instance: which fields come first, which images exist, and how much room the host has.
import { call } from '../api/call.ts'
import type { Image } from '../api/types.ts'
import type { CreateSpec } from '../forms/create-dialog.tsx'
import type { Range } from '../forms/range.ts'
import { bytes } from '../parts/format.ts'
import { say } from '../state/notices.ts'
import { go } from '../state/route.ts'

interface Room { readonly available: number, readonly effective_limit: number, readonly source?: string }
interface Rooms { readonly cpu: Room, readonly memory: Room, readonly disk: Room }
interface Limit { readonly min: number, readonly max: number, readonly default: number }
interface Limits { readonly instances: { readonly vcpus: Limit, readonly size_bytes: Limit, readonly overlay_size_bytes: Limit } }

/** What is short, as a refusal for want of room names it, and the field that asks for it. */
const SHORT = { cpu: 'vcpus', memory: 'size', disk: 'overlay_size' } as const

export const createInstance: CreateSpec = {
  documented: '/instances',
  first: ['image', 'name', 'vcpus', 'size', 'overlay_size', 'cmd', 'env'],
  suggestions: async () => {
    const images = await call<Image[]>('GET', '/images?status=ready')
    return { image: images.map(({ name }) => name) }
  },
  ranges: async (show) => {
    const { cpu, memory, disk } = await call<Rooms>('GET', '/resources')
    const of = (instances?: Limits['instances']): Readonly<Record<string, Range>> => ({
      vcpus: rangeOf('count', instances?.vcpus, cpu, 'The host'), size: rangeOf('bytes', instances?.size_bytes, memory, 'The host'), overlay_size: rangeOf('bytes', instances?.overlay_size_bytes, disk, 'The disk')
    })
    show(of())
    // On a server that has just started this takes as long as a boot.
    show(of((await call<Limits>('GET', '/capabilities')).instances))
  },
  fieldOf: (code, message) => code === 'insufficient_resources' ? Object.entries(SHORT).find(([name]) => message.includes(` ${name}: `))?.[1] : undefined,
  onMade: (made) => {
    const { id, name } = made as { readonly id: string, readonly name: string }
    say(`${name}: created`)
    go(['instances', id])
  }
}

const LEAST = { count: 1, bytes: 64 * 2 ** 20 } as const

function rangeOf (kind: Range['kind'], limit: Limit | undefined, { available, effective_limit: all, source }: Room, where: string): Range {
  const isKnown = source !== 'unknown'
  const amount = (value: number): string => kind === 'count' ? String(Math.floor(value)) : bytes(value)
  const min = limit?.min ?? LEAST[kind]
  const most = limit?.max ?? Infinity
  const left = [...isKnown ? [`${where} has ${amount(available)} of ${amount(all)} left`] : [], ...limit === undefined ? [] : [`one instance may have ${amount(limit.max)}`], ...isKnown && available < min ? ['there is no room for another one'] : []]
  return { kind, min, max: Math.min(most, isKnown ? available : most), ...limit === undefined ? {} : { standard: limit.default }, text: left.join('; ') }
}
