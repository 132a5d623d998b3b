// The form for a new instance: which fields come first, which images exist, and how much room the host has.
import { call } from '../api/call.ts'
import type { Image } from '../api/types.ts'
import type { CreateSpec } from '../forms/create-dialog.tsx'
import { bytes } from '../parts/format.ts'
import { say } from '../state/notices.ts'
import { go } from '../state/route.ts'

interface Room { readonly available: number }

export const createInstance: CreateSpec = {
  documented: '/instances',
  first: ['image', 'name', 'size', 'vcpus', 'cmd', 'env'],
  suggestions: async () => {
    const images = await call<Image[]>('GET', '/images?status=ready')
    return { image: images.map(({ name }) => name) }
  },
  hints: async () => {
    const { cpu, memory, disk } = await call<{ readonly cpu: Room, readonly memory: Room, readonly disk: Room }>('GET', '/resources')
    return {
      vcpus: `The host has ${cpu.available} left`,
      size: `Such as 512MB. The host has ${bytes(memory.available)} left`,
      overlay_size: `The disk has ${bytes(disk.available)} left`
    }
  },
  onMade: (made) => {
    const { id, name } = made as { readonly id: string, readonly name: string }
    say(`${name}: created`)
    go(['instances', id])
  }
}
