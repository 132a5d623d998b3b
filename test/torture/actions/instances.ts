// Instances come, run, rest and go.
import { API } from '../../integration/egress-enforcement/far/contract.ts'
import { plainCall, PROGRAM_PORT, VMS, VOLUMES, type Choose } from './action.ts'

/** Programs of guests: one that stays and ends when it is told to, one that serves, one that fails soon, one that ends well, and one that writes a lot. */
const PROGRAMS = [
  'trap "exit 0" TERM; while true; do sleep 1; done',
  'trap "exit 0" TERM; while true; do sleep 1; done',
  `httpd -p ${PROGRAM_PORT} -h /; trap "exit 0" TERM; while true; do sleep 1; done`,
  'sleep 3; exit 3',
  'echo over',
  'trap "exit 0" TERM; n=0; while true; do n=$((n+1)); echo "line $n"; sleep 0.1; done'
] as const

const NETWORKS = ['off', 'none', 'all', 'http_https_only'] as const

export const create: Choose = (random) => {
  const name = random.pick(VMS)
  const network = random.pick(NETWORKS)
  const hasSecret = (network === 'all' || network === 'http_https_only') && !random.once(3)
  const program = random.pick(PROGRAMS)
  const volume = random.once(3) ? random.pick(VOLUMES) : undefined
  const readonly = random.once(2)
  return {
    text: `create ${name}: network ${network}${hasSecret ? ' with a secret' : ''}${volume === undefined ? '' : `, ${volume}${readonly ? ' to read' : ''}`}: ${program}`,
    run: async (world) => {
      const end = world.model.creates('instance', name)
      const answer = await world.call('POST', '/instances', {
        name, image: world.stage.image, size: '128MB', vcpus: 1, overlay_size: '256MB', entrypoint: [], cmd: ['/bin/sh', '-c', program],
        network: { enabled: network !== 'off', ...network === 'all' || network === 'http_https_only' ? { egress: { enabled: true, enforcement: { mode: network } } } : {} },
        ...hasSecret ? { env: { REAL: world.stage.secret }, credentials: { API_KEY: { source: { env: 'REAL' }, inject: [{ hosts: [API.host], as: { header: 'Authorization', format: 'Bearer ${value}' } }] } } } : {},
        ...volume === undefined ? {} : { volumes: [{ volume_id: volume, mount_path: '/data', readonly }] }
      })
      end(answer.status === 201 ? answer.text('id') : undefined)
      return answer.summary
    }
  }
}

export const remove: Choose = (random) => {
  const name = random.pick(VMS)
  const isGraceful = random.once(3)
  return {
    text: `delete ${name}${isGraceful ? ' gracefully' : ''}`,
    run: async (world) => {
      const end = world.model.deletes('instance', name)
      const answer = await world.call('DELETE', `/instances/${name}${isGraceful ? '?graceful_shutdown=true' : ''}`)
      end(answer.status)
      return answer.summary
    }
  }
}

export const start: Choose = (random) => plain(random.pick(VMS), 'start', {})
export const stop: Choose = (random) => plain(random.pick(VMS), 'stop')
export const restore: Choose = (random) => plain(random.pick(VMS), 'restore')
export const standby: Choose = (random) => plain(random.pick(VMS), 'standby', random.once(3) ? { compression: { enabled: true, algorithm: random.pick(['zstd', 'lz4']) } } : undefined)

/** It goes when nobody has called it, whenever that is, and callers wake it. */
export const sleepByItself: Choose = (random) => {
  const [name, enabled] = [random.pick(VMS), !random.once(3)]
  const wake = random.pick(['standby', 'always'])
  return {
    text: `${name} ${enabled ? 'sleeps' : 'does not sleep'} by itself, wake: ${wake}`,
    run: async (world) => {
      world.model.touches(name)
      return (await world.call('PATCH', `/instances/${name}`, { auto_standby: { enabled, idle_timeout: '3s' }, wake })).summary
    }
  }
}

export const fork: Choose = (random) => {
  const [source, name] = [random.pick(VMS), random.pick(VMS)]
  return {
    text: `fork ${source} as ${name}`,
    run: async (world) => {
      const end = world.model.creates('instance', name)
      const answer = await world.call('POST', `/instances/${source}/fork`, { name, from_running: true })
      end(answer.status === 201 ? answer.text('id') : undefined)
      world.model.touches(source)
      return answer.summary
    }
  }
}

function plain (name: string, verb: string, body?: unknown) {
  const { text, run } = plainCall(`${verb} ${name}${body === undefined ? '' : ` ${JSON.stringify(body)}`}`, 'POST', `/instances/${name}/${verb}`, body)
  return {
    text,
    run: async (world: Parameters<typeof run>[0]) => {
      world.model.touches(name)
      return await run(world)
    }
  }
}
