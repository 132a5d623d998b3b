// What always holds when nothing is under way, whatever went wrong before: each with a sentence, and how to see that it does not.
import { randomBytes } from 'node:crypto'
import { basename, dirname } from 'node:path'
import { tapOf } from '../../plugins/networking/names.ts'
import { networkOf, text, type Sight } from './census/sight.ts'
import { isLogGuard, isNginx, isProxy, isSpawner, isVmm, isWorker, type Process } from './census/processes.ts'
import { API } from '../integration/egress-enforcement/far/contract.ts'
import type { Row, World } from './world.ts'

export interface Invariant {
  readonly sentence: string
  /** looked at once all others hold, since it takes seconds */
  readonly isDear?: boolean
  /** what contradicts it */
  broken (sight: Sight, world: World, before: Before): readonly string[] | Promise<readonly string[]>
}

/** What was there before the round. */
export interface Before {
  readonly mounts: readonly string[]
  /** by the id of an instance, its VMM as pid and start time */
  readonly vmms: ReadonlyMap<string, string>
}

const AT_REST = ['Running', 'Stopped', 'Standby']
const ENDED = ['ready', 'failed']
const BUILT = ['ready', 'failed', 'cancelled']
const BUILDS = 'builds'

export const INVARIANTS: readonly Invariant[] = [
  {
    sentence: 'an instance comes to rest: it runs, is stopped, or is in standby',
    broken: ({ instances }) => instances.filter((each) => !AT_REST.includes(text(each, 'state'))).map((each) => `${text(each, 'name')} is ${text(each, 'state')} ${text(each, 'state_error')}`)
  },
  {
    sentence: 'an image is ready or has failed, a build is over, a builder is at rest, and a compression is over',
    broken: ({ images, snapshots, builds, builders }) => [
      ...builds.filter((each) => !BUILT.includes(text(each, 'status'))).map((each) => `build ${text(each, 'id')} is ${text(each, 'status')}`),
      ...builders.filter((each) => !['ready', 'error'].includes(text(each, 'status'))).map((each) => `builder ${text(each, 'id')} is ${text(each, 'status')}`),
      ...images.filter((each) => !ENDED.includes(text(each, 'status'))).map((each) => `${text(each, 'name')} is ${text(each, 'status')}`),
      ...snapshots.filter((each) => text(each, 'compression_state') === 'compressing').map((each) => `snapshot ${text(each, 'id')} is being compressed`)
    ]
  },
  {
    sentence: 'what a call has made and acknowledged is there until somebody deletes it',
    broken: ({ instances, volumes, snapshots }, { model }) => ([['instance', instances], ['volume', volumes], ['snapshot', snapshots]] as const)
      .flatMap(([kind, there]) => model.there(kind).filter((id) => !ids(there).includes(id)).map((id) => `${kind} ${id} is gone`))
  },
  {
    sentence: 'what a call has deleted and acknowledged is not there again',
    broken: ({ instances, volumes }, { model }) => [
      ...instances.filter((each) => model.gone('instance').includes(text(each, 'name'))).map((each) => `instance ${text(each, 'name')} is there`),
      ...volumes.filter((each) => model.gone('volume').includes(text(each, 'name'))).map((each) => `volume ${text(each, 'name')} is there`)
    ]
  },
  {
    sentence: 'the API lists what the database has, and no row says that something is under way',
    broken: ({ instances, snapshots, volumes, ports, ingresses, webhooks, builds, builders, rows }) => [
      ...differ('ports and rows', ids(ports), ids(rows.ports_ports)),
      ...differ('ingresses and rows', ids(ingresses), ids(rows.ingress_ingresses)),
      ...differ('webhooks and rows', ids(webhooks), ids(rows.webhooks_webhooks)),
      ...differ('builds and rows', ids(builds), ids(rows.builds_builds)),
      ...differ('builders and rows', ids(builders), ids(rows.builds_builders)),
      ...differ('instances and rows', ids(instances), ids(rows.instances_instances)),
      ...differ('snapshots and rows', ids(snapshots), ids(rows.snapshots_snapshots)),
      ...differ('volumes and rows', ids(volumes), ids(rows.volumes_volumes.filter((row) => row['owner'] === null))),
      ...[...rows.instances_instances, ...rows.snapshots_snapshots, ...rows.volumes_volumes].filter((row) => !['active', 'ready'].includes(text(row, 'status'))).map((row) => `row ${text(row, 'id')} is ${text(row, 'status')}`)
    ]
  },
  {
    sentence: 'each instance that runs, or whose VM is kept in standby, and each spare VM, has one VMM, and no VMM is without one',
    broken: ({ instances, kept, spares, processes }) => differ('instances that run and VMMs', [...ids(running(instances)), ...ids(kept), ...ids(spares)], processes.filter(isVmm).map(instanceOf))
  },
  {
    sentence: 'a VM that no call was about and no fault hit runs on, whatever became of the server',
    broken: ({ processes, instances }, { model, faults }, { vmms }) => {
      if (['vmm', 'bytes', 'inodes'].some((each) => faults.has(each as 'vmm'))) return []
      const now = vmmsOf(processes)
      return instances.filter((each) => !model.wasTouched(text(each, 'name')) && !sleepsByItself(each) && !endedByItself(each) && vmms.has(text(each, 'id')) && vmms.get(text(each, 'id')) !== now.get(text(each, 'id')))
        .map((each) => `${text(each, 'name')} had process ${vmms.get(text(each, 'id')) ?? ''} and has ${now.get(text(each, 'id')) ?? 'none'}`)
    }
  },
  {
    sentence: 'a TAP is there for each instance that has a VM with a network, for each spare VM that has one, and for no other',
    broken: ({ instances, kept, spares, rows, links }) => differ('instances and TAPs', [...[...plugged(instances), ...kept.filter((each) => networkOf(each).enabled)].map((each) => networkOf(each).tap), ...withAddress(spares, rows.networking_addresses).map(tapOf)], links)
  },
  {
    sentence: 'the rules have the guests that are plugged, each with its own way out, and nobody else',
    broken: ({ instances, kept, rules, spares, rows }) => {
      // The TAP of one that is kept is down, whatever the rules say.
      const connected = [...plugged(instances), ...kept.filter((each) => networkOf(each).enabled)]
      // A spare VM goes directly out until it is an instance.
      const ofSpares = rows.networking_addresses.filter((row) => ids(spares).includes(text(row, 'instance_id'))).map((row) => text(row, 'ip'))
      const ips = (isIn: (mode: string) => boolean): string[] => [...connected.filter((each) => isIn(networkOf(each).mode)).map((each) => networkOf(each).ip), ...isIn('none') ? ofSpares : []]
      const wanted = { senders: ips(() => true), guests: ips(() => true), direct: ips((mode) => mode === 'none'), mediated: ips((mode) => mode !== 'none'), sealed: ips((mode) => mode === 'all') }
      return Object.entries(wanted).flatMap(([set, expected]) => differ(`set ${set}`, expected, rules.get(set) ?? []))
    }
  },
  {
    sentence: 'an address belongs to an instance that has a network, or to a spare VM',
    broken: ({ instances, spares, rows }) => differ('instances and addresses', [...ids(instances.filter((each) => networkOf(each).enabled)), ...withAddress(spares, rows.networking_addresses)], rows.networking_addresses.map((row) => text(row, 'instance_id')))
  },
  {
    sentence: 'a policy belongs to an instance that runs with one',
    broken: ({ instances, rows }) => differ('instances and policies', ids(plugged(instances).filter((each) => networkOf(each).mode !== 'none')), rows.egress_vms.map((row) => text(row, 'instance_id')))
  },
  {
    sentence: 'a volume is attached to those that name it',
    broken: ({ instances, rows }) => differ('mounts and attachments', instances.flatMap((each) => ((each['volumes'] ?? []) as Row[]).map((volume) => `${text(volume, 'volume_id')} ${text(each, 'id')}`)), rows.volumes_attachments.map((row) => `${text(row, 'volume_id')} ${text(row, 'instance_id')}`))
  },
  {
    sentence: 'a volume that is written has no other user',
    broken: ({ rows }) => rows.volumes_attachments.filter((row) => Number(row['readonly']) === 0 && rows.volumes_attachments.some((other) => other !== row && other['volume_id'] === row['volume_id'])).map((row) => `${text(row, 'volume_id')} has a writer and another user`)
  },
  {
    sentence: 'folders and files belong to rows',
    broken: ({ folders, rows, instances, spares }) => [
      ...differ('instances and folders', [...ids(rows.instances_instances), ...ids(spares)], folders.instances),
      ...differ('snapshots and folders', ids(rows.snapshots_snapshots), folders.snapshots),
      ...differ('volumes and disks', ids(rows.volumes_volumes).map((id) => `${id}.img`), folders.disks),
      ...extra(folders.uses, usersOf(rows.volumes_attachments)).map((id) => `the folder of volumes of ${id} is too much`),
      // One that got its volume when it was stopped has no folder before its next start.
      ...usersOf(rows.volumes_attachments).filter((id) => ids(running(instances)).includes(id) && !folders.uses.includes(id)).map((id) => `the folder of volumes of ${id} is missing`),
      ...differ('images and folders', rows.images_contents.filter((row) => text(row, 'status') === 'ready').map((row) => text(row, 'digest').replace('sha256:', '')), folders.images)
    ]
  },
  {
    sentence: 'an image that somebody uses is held for him, and for nobody who is gone',
    broken: ({ rows }) => {
      const users = new Set([...ids(rows.instances_instances), ...ids(rows.snapshots_snapshots)])
      const holders = rows.images_holders.map((row) => text(row, 'holder').split(/[ :/]/).at(-1) ?? '')
      return [...holders.filter((id) => !users.has(id)).map((id) => `held for ${id}, who is gone`), ...[...users].filter((id) => !holders.includes(id)).map((id) => `not held for ${id}`)]
    }
  },
  {
    sentence: 'nothing half is left',
    // A spare VM that was made of a snapshot has the image that it was restored on until it is woken as an instance.
    broken: ({ halves, spares }) => halves.filter((path) => !ids(spares).some((id) => path === `instances/${id}/standby.taken`))
  },
  {
    sentence: 'no mount and no loop device is left',
    // A namespace has one.
    broken: ({ mounts, loops }, { stage: { namespace } }, before) => [...extra(mounts.filter((path) => basename(path) !== namespace && path !== '/run/netns'), before.mounts).map((path) => `mount ${path}`), ...loops.map((each) => `loop device ${each}`)]
  },
  {
    sentence: 'locks are held by the server, the guard of logs, and VMMs that run',
    broken: ({ locks, processes }, { server }) => {
      const holders = new Set([server.now.pid, ...processes.filter((each) => isVmm(each) || isLogGuard(each)).map(({ pid }) => pid)])
      return locks.filter(({ pid }) => pid > 0 && !holders.has(pid)).map(({ pid, inode }) => `process ${pid} (${commandOf(processes, pid)}) has a lock on inode ${inode}`)
    }
  },
  {
    sentence: 'no process is left without a use',
    broken: ({ processes, instances }, { server, stage: { database } }) => {
      const hasNetwork = plugged(instances).length > 0
      const isOurs = ({ pid, parent }: Process): boolean => pid === 1 || pid === process.pid || pid === server.now.pid || pid === database.pid || parent === process.pid
      const isKnown = (each: Process): boolean => isVmm(each) || isLogGuard(each) || isProxy(each) || isWorker(each) || isNginx(each) || (basename(each.command[0] ?? '') === 'dnsmasq') || (each.parent === server.now.pid && (isSpawner(each) || basename(each.command[0] ?? '') === 'docker-registry'))
      return [
        ...processes.filter((each) => each.state === 'Z' && each.parent !== 1).map(({ pid, parent }) => `process ${pid} has ended and its parent ${parent} (${commandOf(processes, parent)}) has not asked how`),
        ...processes.filter((each) => each.state !== 'Z' && !isOurs(each) && !isKnown(each)).map(({ pid, parent, command }) => `process ${pid} of ${parent}: ${command.join(' ').slice(0, 200)}`),
        ...processes.filter(isProxy).length > 1 ? ['several proxies run'] : [],
        ...processes.filter(isLogGuard).length > 1 ? ['several guards of logs run'] : [],
        ...hasNetwork && processes.filter(({ command }) => basename(command[0] ?? '') === 'dnsmasq').length === 0 ? ['guests have no DNS'] : []
      ]
    }
  },
  {
    sentence: 'a control group is there for each VM, in each hierarchy, and for nobody else',
    broken: ({ groups, instances, kept, spares }) => [...groups].flatMap(([home, there]) => differ(`VMs and groups of ${home}`, [...ids(running(instances)), ...ids(kept), ...ids(spares)], there))
  },
  {
    sentence: 'a published port, a claim of a host name and a claim of room belong to what is there',
    broken: ({ instances, rows }) => [
      ...extra(rows.ports_ports.map((row) => text(row, 'instance_id')).filter((id) => !ids(instances).includes(id)), []).map((id) => `a port of ${id}, who is gone`),
      ...differ('ingresses and claims', ids(rows.ingress_ingresses), rows.ingress_claims.map((row) => text(row, 'ingress_id'))),
      ...differ('instances, volumes and claims', [...ids(rows.instances_instances), ...ids(rows.volumes_volumes)], rows.resources_claims.map((row) => text(row, 'id')))
    ]
  },
  {
    sentence: 'the rules of the host lead the published ports of instances that run, and no other',
    broken: ({ ports, instances, leading }) => differ('ports and rules', ports.filter((each) => ids(plugged(instances)).includes(text(each, 'instance_id'))).map((each) => `${text(each, 'protocol')} ${text(each, 'host_port')}`).sort(), leading)
  },
  {
    sentence: 'every published port is served',
    broken: ({ ports }) => ports.filter((each) => each['problem'] !== null).map((each) => `port ${text(each, 'host_port')}: ${text(each, 'problem')}`)
  },
  {
    sentence: 'no disk of a build is left, and each builder that is ready has its own',
    broken: ({ rows }) => differ('builders and disks', rows.builds_builders.filter((row) => text(row, 'status') === 'ready').map((row) => text(row, 'volume_id')), ids(rows.volumes_volumes.filter((row) => row['owner'] === BUILDS)))
  },
  {
    sentence: 'a webhook that is on goes on, and its receiver hears of events in their order',
    broken: ({ webhooks }, { stage: { receiver } }) => [
      ...webhooks.filter((each) => each['enabled'] === true && text(each, 'status') !== 'active').map((each) => `webhook ${text(each, 'id')} is ${text(each, 'status')}: ${JSON.stringify(each['last_error'])}`),
      ...receiver.disorder
    ]
  },
  {
    sentence: 'the secret reaches its host over TLS, and nobody else',
    broken: async (_sight, { stage: { far, secret } }) => (await far.seen()).filter(({ authorization, host, secure }) => authorization?.includes(secret) === true && (host !== API.host || !secure)).map(({ host, url }) => `${host} was sent the secret for ${url}`)
  },
  {
    sentence: 'a guest that runs does what it is told',
    isDear: true,
    broken: async ({ instances }, world) => await ofThoseThatRun(world, instances, async (name) => {
      const printed = await world.shell(name, 'echo alive')
      return printed === '0: alive' ? undefined : printed
    })
  },
  {
    sentence: 'a request of a guest that has a secret reaches its host with it',
    isDear: true,
    broken: async ({ instances, rows }, world) => {
      const withSecret = rows.instances_instances.filter((row) => text(row, 'spec').includes('"API_KEY"')).map((row) => text(row, 'id'))
      return await ofThoseThatRun(world, instances.filter((each) => withSecret.includes(text(each, 'id'))), async (name) => {
        const path = `/${name}-${randomBytes(6).toString('hex')}`
        const printed = await world.shell(name, `curl -sS -k -m 30 -H 'Authorization: Bearer mock-API_KEY' 'https://${API.host}${path}' 2>&1`)
        const seen = (await world.stage.far.seen()).find(({ url }) => url === path)
        return seen?.authorization === `Bearer ${world.stage.secret}` ? undefined : `${printed}; its host saw ${seen === undefined ? 'nothing' : seen.authorization ?? 'no authorization'}`
      })
    }
  }
]

/** Asks each that runs; what it says counts if it runs on afterwards. */
async function ofThoseThatRun (world: World, instances: readonly Row[], ask: (name: string) => Promise<string | undefined>): Promise<string[]> {
  const found: string[] = []
  for (const each of running(instances)) {
    const name = text(each, 'name')
    const wrong = await ask(name)
    if (wrong !== undefined && (await world.call('GET', `/instances/${name}`)).text('state') === 'Running') found.push(`${name}: ${wrong}`)
  }
  return found
}

function sleepsByItself (instance: Row): boolean {
  return (instance['auto_standby'] as { enabled?: boolean } | undefined)?.enabled === true
}

/** Its program is over, and said how: nobody has taken its VM away. */
function endedByItself (instance: Row): boolean {
  return instance['state'] === 'Stopped' && typeof instance['exit_code'] === 'number'
}

/** ids of those that have an address */
function withAddress (spares: readonly Row[], addresses: readonly Row[]): string[] {
  const owners = addresses.map((row) => text(row, 'instance_id'))
  return ids(spares).filter((id) => owners.includes(id))
}

function running (instances: readonly Row[]): Row[] {
  return instances.filter((each) => text(each, 'state') === 'Running')
}

function plugged (instances: readonly Row[]): Row[] {
  return running(instances).filter((each) => networkOf(each).enabled)
}

function usersOf (attachments: readonly Row[]): string[] {
  return [...new Set(attachments.map((row) => text(row, 'instance_id')))]
}

function ids (rows: readonly Row[]): string[] {
  return rows.map((row) => text(row, 'id'))
}

/** A VMM works in the folder of its instance, or below. */
function instanceOf ({ cwd }: Process): string {
  const parts = cwd.split('/')
  return parts[parts.indexOf('instances') + 1] ?? dirname(cwd)
}

export function vmmsOf (processes: readonly Process[]): Map<string, string> {
  return new Map(processes.filter(isVmm).map((each) => [instanceOf(each), `${each.pid} of ${each.startTime}`]))
}

function commandOf (processes: readonly Process[], pid: number): string {
  return processes.find((each) => each.pid === pid)?.command.join(' ').slice(0, 100) ?? 'gone'
}

function differ (what: string, wanted: readonly string[], there: readonly string[]): string[] {
  return [...extra(there, wanted).map((each) => `${what}: ${each} is too much`), ...extra(wanted, there).map((each) => `${what}: ${each} is missing`)]
}

/** What is there more often than it is wanted. */
function extra (there: readonly string[], wanted: readonly string[]): string[] {
  const left = [...wanted]
  return there.filter((each) => {
    const at = left.indexOf(each)
    if (at >= 0) left.splice(at, 1)
    return at < 0
  })
}
