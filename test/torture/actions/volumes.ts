// Volumes come and go, and are attached to instances that run and that do not.
import { VMS, VOLUMES, type Choose } from './action.ts'

export const createVolume: Choose = (random) => {
  const name = random.pick(VOLUMES)
  return {
    text: `create ${name}`,
    run: async (world) => {
      const end = world.model.creates('volume', name)
      const answer = await world.call('POST', '/volumes', { id: name, name, size_gb: 1 })
      end(answer.status === 201 ? name : undefined)
      return answer.summary
    }
  }
}

export const deleteVolume: Choose = (random) => {
  const name = random.pick(VOLUMES)
  return {
    text: `delete ${name}`,
    run: async (world) => {
      const end = world.model.deletes('volume', name)
      const answer = await world.call('DELETE', `/volumes/${name}`)
      end(answer.status)
      return answer.summary
    }
  }
}

export const attach: Choose = (random) => {
  const [vm, volume, readonly] = [random.pick(VMS), random.pick(VOLUMES), random.once(2)]
  return { text: `attach ${volume} to ${vm}${readonly ? ' to read' : ''}`, run: async (world) => (await world.call('POST', `/instances/${vm}/volumes/${volume}`, { mount_path: '/more', readonly })).summary }
}

export const detach: Choose = (random) => {
  const [vm, volume] = [random.pick(VMS), random.pick(VOLUMES)]
  return { text: `detach ${volume} from ${vm}`, run: async (world) => (await world.call('DELETE', `/instances/${vm}/volumes/${volume}`)).summary }
}
