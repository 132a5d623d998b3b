// Builds are asked for, cancelled and told of, with the disks of builders. Their VMs boot from the image of the guests, which has no builder's programs: each build that gets so far fails in its VM.
import { gzipSync } from 'node:zlib'
import { tar } from '../../helpers/tar.ts'
import { BUILDERS, type Choose } from './action.ts'

const MEMORY_MB = 256

export const build: Choose = (random) => {
  const [builder, bytes, mode] = [random.once(2) ? random.pick(BUILDERS) : undefined, random.below(2_000_000), random.pick(['isolated', 'egress'])]
  return {
    text: `build of ${bytes} bytes, ${mode}${builder === undefined ? '' : ` with ${builder}`}`,
    run: async (world) => {
      const form = new FormData()
      form.set('source', new Blob([gzipSync(tar([{ path: 'Dockerfile', content: 'FROM scratch\nCOPY file /\n' }, { path: 'file', content: 'x'.repeat(bytes) }]))]), 'source.tar.gz')
      for (const [name, value] of Object.entries({ memory_mb: String(MEMORY_MB), cpus: '1', network_mode: mode, ...builder === undefined ? {} : { builder_id: builder } })) form.set(name, value)
      return (await world.call('POST', '/builds', form)).summary
    }
  }
}

export const cancelBuild: Choose = (random) => {
  const place = random.below(100)
  return {
    text: `cancel build ${place}`,
    run: async (world) => {
      const builds = (await world.call('GET', '/builds')).items().filter((each) => ['queued', 'building', 'pushing'].includes(String(each['status'])))
      const found = builds[place % builds.length]
      return found === undefined ? 'none' : (await world.call('DELETE', `/builds/${String(found['id'])}`)).summary
    }
  }
}

export const createBuilder: Choose = (random) => {
  const id = random.pick(BUILDERS)
  return { text: `create ${id}`, run: async (world) => (await world.call('POST', '/builders', { id, disk_size_gb: 1 })).summary }
}

export const pruneBuilder: Choose = (random) => {
  const id = random.pick(BUILDERS)
  return { text: `prune ${id}`, run: async (world) => (await world.call('POST', `/builders/${id}/prune`)).summary }
}

export const deleteBuilder: Choose = (random) => {
  const id = random.pick(BUILDERS)
  return { text: `delete ${id}`, run: async (world) => (await world.call('DELETE', `/builders/${id}`)).summary }
}
