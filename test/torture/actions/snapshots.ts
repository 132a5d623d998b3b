// Snapshots are taken, made instances of, put back, and removed. They are found by their names, of which several may be there: one for each source.
import type { World } from '../world.ts'
import { SNAPSHOTS, VMS, type Choose } from './action.ts'

export const take: Choose = (random) => {
  const [vm, name, kind] = [random.pick(VMS), random.pick(SNAPSHOTS), random.pick(['Standby', 'Standby', 'Stopped'])]
  const compression = random.once(3) ? { enabled: true, algorithm: random.pick(['zstd', 'lz4']) } : undefined
  return {
    text: `snapshot ${kind} of ${vm} as ${name}${compression === undefined ? '' : ` with ${compression.algorithm}`}`,
    run: async (world) => {
      const end = world.model.creates('snapshot', name)
      world.model.touches(vm)
      const answer = await world.call('POST', `/instances/${vm}/snapshots`, { kind, name, ...compression === undefined ? {} : { compression } })
      end(answer.status === 201 ? answer.text('id') : undefined)
      return answer.summary
    }
  }
}

export const forkSnapshot: Choose = (random) => {
  const [snapshot, name] = [random.pick(SNAPSHOTS), random.pick(VMS)]
  return {
    text: `fork ${snapshot} as ${name}`,
    run: async (world) => await withSnapshot(world, snapshot, async (id) => {
      const end = world.model.creates('instance', name)
      const answer = await world.call('POST', `/snapshots/${id}/fork`, { name })
      end(answer.status === 201 ? answer.text('id') : undefined)
      return answer.summary
    })
  }
}

export const putBack: Choose = (random) => {
  const [snapshot, vm] = [random.pick(SNAPSHOTS), random.pick(VMS)]
  return {
    text: `restore ${vm} to ${snapshot}`,
    run: async (world) => await withSnapshot(world, snapshot, async (id) => {
      world.model.touches(vm)
      return (await world.call('POST', `/instances/${vm}/snapshots/${id}/restore`, {})).summary
    })
  }
}

export const deleteSnapshot: Choose = (random) => {
  const snapshot = random.pick(SNAPSHOTS)
  return {
    text: `delete ${snapshot}`,
    run: async (world) => await withSnapshot(world, snapshot, async (id) => {
      // Of a name there may be several: only this one is known to go.
      const end = world.model.deletes('snapshot', snapshot, id)
      const answer = await world.call('DELETE', `/snapshots/${id}`)
      end(answer.status)
      return answer.summary
    })
  }
}

async function withSnapshot (world: World, name: string, work: (id: string) => Promise<string>): Promise<string> {
  const found = await world.call('GET', `/snapshots?name=${name}`)
  const id = found.items()[0]?.['id']
  return typeof id === 'string' ? await work(id) : `${found.summary}, none`
}
