// Puts instances in standby that nobody uses. What is seen is kept in memory only: a server that starts counts anew, since nobody has looked meanwhile. The hold that a caller was
// promised is stored. Time is the host's uptime, so that a clock that is set puts no instance in standby early.
import type { InboundConnection } from '../../networking/contract.ts'
import { pathsIn, type Context } from '../context.ts'
import { wantedFor } from '../compression/compression-for.ts'
import { StillInUse } from '../errors.ts'
import { hostClock, msUntil } from '../life/moment.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import type { GuestSession } from '../guest/guest-session.ts'
import { logged } from '../folder/operations-log.ts'
import { standby } from '../operations/standby.ts'
import { Idleness, qualifying, type AutoStandbyPolicy } from './policy.ts'
import type { AutoStandbyReason } from './schemas.ts'

/** Shorter than the time for which the kernel remembers a closed connection, so that none is missed. */
const LOOK_MS = 5000
const SHORTEST_LOOK_MS = 100
/** after a standby that failed */
const RETRY_MS = 60_000
const MOST_AT_ONCE = 4

export interface Watched {
  readonly session: GuestSession
  readonly idleness: Idleness
  /** it is being put to sleep */
  going?: Promise<void>
  /** why the open connections are unknown */
  problem?: string
}

export interface IdleWatch {
  open (): void
  close (): Promise<void>
  /** Looks at the connections now. */
  look (): Promise<void>
  /** undefined: it cannot go to standby by itself now */
  watched (id: string): Watched | undefined
  /** Keeps the instance awake until `release`, even when its standby has just begun. */
  keep (id: string): { release (): void }
}

/** Why the instance cannot go to standby by itself, even when nothing is open; undefined when it can. */
export function ineligible ({ network }: Pick<Context, 'network'>, { id, record: { spec }, state, session }: LiveInstance): AutoStandbyReason | undefined {
  if (network === undefined) return 'unsupported_platform'
  if (spec.autoStandby === undefined) return 'policy_missing'
  if (!spec.autoStandby.enabled) return 'policy_disabled'
  if (spec.network?.enabled !== true) return 'network_disabled'
  if (spec.gpu !== undefined || (spec.devices?.length ?? 0) > 0) return 'has_vgpu'
  if (state !== 'Running' || session === undefined) return 'instance_not_running'
  return network.addressOf(id) === undefined ? 'missing_ip' : undefined
}

export const holdMs = ({ record: { life } }: LiveInstance): number => life.hold === undefined ? 0 : Math.max(0, msUntil(life.hold, hostClock))

export function createIdleWatch (context: Context): IdleWatch {
  const entries = new Map<string, Watched>()
  const kept = new Map<string, number>()
  let timer: NodeJS.Timeout | undefined
  let looking: Promise<void> | undefined
  let closed = false
  let wanted = false
  let unsubscribe = (): void => {}

  const observe = async (): Promise<void> => {
    const instances = context.instances.all().filter((instance) => ineligible(context, instance) === undefined)
    const ids = new Set(instances.map(({ id }) => id))
    for (const id of [...entries.keys()]) if (!ids.has(id)) entries.delete(id)
    for (const { id, session } of instances) if (session !== undefined && entries.get(id)?.session !== session) entries.set(id, { session, idleness: new Idleness() })
    if (instances.length === 0) return
    try {
      const inbound = byInstance(await context.network?.inbound() ?? [])
      for (const { id, record: { spec: { autoStandby } } } of instances) {
        const entry = entries.get(id)
        if (entry === undefined || autoStandby === undefined) continue
        delete entry.problem
        entry.idleness.observe({ now: performance.now(), connections: qualifying(inbound.get(id) ?? [], autoStandby), leases: context.leases.reasons(id), freeSince: context.leases.freeSince(id) })
      }
    } catch (error) {
      context.log.error({ err: error }, 'nobody knows which connections are open: no instance goes to standby by itself')
      for (const entry of entries.values()) {
        entry.problem = 'the connections of the network cannot be seen'
        entry.idleness.lose()
      }
    }
  }
  const look = async (): Promise<void> => {
    looking ??= observe().finally(() => { looking = undefined })
    await looking
  }
  /** Waits for a look that is under way, and looks once more: that one may have seen the state of a moment ago. */
  const lookAnew = async (): Promise<void> => {
    await looking
    await look()
  }

  const isHeld = (instance: LiveInstance): boolean => (kept.get(instance.id) ?? 0) > 0 || holdMs(instance) > 0
  const isDue = (instance: LiveInstance, entry: Watched, policy: AutoStandbyPolicy | undefined): boolean =>
    policy?.enabled === true && entries.get(instance.id) === entry && instance.session === entry.session && instance.state === 'Running' &&
    entry.idleness.msLeft(policy.idleTimeoutMs, performance.now()) === 0 && !isHeld(instance)

  /** The lock of the instance is held. */
  const putToSleep = async (instance: LiveInstance, entry: Watched): Promise<void> => {
    if (closed || instance.deleted || context.closing.signal.aborted) return
    await lookAnew()
    const { spec } = instance.record
    if (!isDue(instance, entry, spec.autoStandby)) return
    const compression = wantedFor({}, spec, context.settings.compression)
    await logged(pathsIn(context, instance.id).operations, 'auto-standby', context.log, async () => {
      await context.metrics.timed('standby', async () => {
        await standby(context, instance, compression, async () => {
          // Somebody may have come while the standby was under way. The guest is asleep by now, and is woken again.
          const inbound = qualifying((await context.network?.inbound() ?? []).filter(({ instanceId }) => instanceId === instance.id), spec.autoStandby ?? { ignoredPorts: [], ignoredSources: [] })
          if (inbound.some(({ open }) => open) || context.leases.reasons(instance.id).length > 0 || isHeld(instance)) throw StillInUse(instance.name)
        })
      })
    })
  }
  const begin = (instance: LiveInstance, entry: Watched): void => {
    entry.going = context.locks.hold(instance.id, async () => { await putToSleep(instance, entry) }).catch((error: unknown) => {
      if (StillInUse.is(error)) return entry.idleness.restart(performance.now())
      context.log.error({ err: error, instance: instance.id }, 'an idle instance could not be put to standby; it is tried again')
      entry.idleness.restart(performance.now() + RETRY_MS)
    }).finally(() => { delete entry.going })
  }
  const act = (): number => {
    let next = LOOK_MS
    for (const [id, entry] of entries) {
      const instance = context.instances.known(id)
      const policy = instance?.record.spec.autoStandby
      if (instance === undefined || policy === undefined || entry.going !== undefined) continue
      if (!isDue(instance, entry, policy)) next = Math.min(next, Math.max(entry.idleness.msLeft(policy.idleTimeoutMs, performance.now()), holdMs(instance), SHORTEST_LOOK_MS))
      else if ([...entries.values()].filter(({ going }) => going !== undefined).length < MOST_AT_ONCE) begin(instance, entry)
    }
    return next
  }
  const turnIn = (ms: number): void => {
    clearTimeout(timer)
    timer = setTimeout(() => { void turn() }, ms).unref()
  }
  const turn = async (): Promise<void> => {
    timer = undefined
    wanted = false
    await look()
    if (closed) return
    const next = act()
    turnIn(wanted ? SHORTEST_LOOK_MS : next)
  }
  /** There is one more instance to look at. */
  const soon = (): void => {
    wanted = true
    if (timer !== undefined) turnIn(SHORTEST_LOOK_MS)
  }

  return {
    open () {
      unsubscribe = context.events.on('instance.state', ({ id, to }) => {
        if (to === 'Running' && context.instances.known(id)?.record.spec.autoStandby?.enabled === true) soon()
      })
      void turn()
    },
    async close () {
      closed = true
      unsubscribe()
      clearTimeout(timer)
      await looking
      await Promise.all([...entries.values()].map(async ({ going }) => { await going }))
    },
    look,
    watched: (id) => entries.get(id),
    keep (id) {
      kept.set(id, (kept.get(id) ?? 0) + 1)
      return {
        release () {
          const left = (kept.get(id) ?? 1) - 1
          if (left > 0) kept.set(id, left)
          else kept.delete(id)
        }
      }
    }
  }
}

function byInstance (connections: readonly InboundConnection[]): ReadonlyMap<string, readonly InboundConnection[]> {
  const found = new Map<string, InboundConnection[]>()
  for (const connection of connections) {
    const others = found.get(connection.instanceId)
    if (others === undefined) found.set(connection.instanceId, [connection])
    else others.push(connection)
  }
  return found
}
