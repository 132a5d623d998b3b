// What the routes call: one function per request, each holding the instance's lock where it changes something.
import type { Readable } from 'node:stream'
import type { WebSocket } from 'ws'
import { withDeadline } from '../../../core/jobs/deadline.ts'
import { Signal } from '../../../core/jobs/signal.ts'
import { awaitAgent, requireAgent } from '../guest/agent.ts'
import type { AutoStandbyStatus } from '../auto-standby/schemas.ts'
import { autoStandbyStatus, holdAwake } from '../auto-standby/status.ts'
import { createIdleWatch } from '../auto-standby/watch.ts'
import type { Capabilities } from './capabilities-schema.ts'
import { capabilitiesOf, type CapabilitySources } from './capabilities.ts'
import { pathsIn, type Context } from '../context.ts'
import { AgentUnavailable } from '../errors.ts'
import { egressLogOf, tryEgress, type EgressLogRequest } from '../egress/egress-log.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { makeInstancesFolder } from '../folder/files.ts'
import { adoptLives } from '../life/watch.ts'
import { instancesFolder } from '../folder/paths.ts'
import { locked as lockedIn } from '../operations/locked.ts'
import { requireOwn } from '../workers/own-instance.ts'
import { sseStream } from '../logs/sse.ts'
import { registerVmms } from '../host/vmms.ts'
import { startLogGuard, type LogGuard } from '../logs/guard.ts'
import { startRotation } from '../logs/rotate.ts'
import { adoptAll } from '../operations/adopt.ts'
import { create } from '../operations/create.ts'
import { remove } from '../operations/delete.ts'
import { beginFork, finishFork } from '../operations/fork.ts'
import { restore } from '../operations/restore.ts'
import { standby } from '../operations/standby.ts'
import { inTurn, type Starts } from '../operations/starts.ts'
import { start } from '../operations/start.ts'
import { endVm, stop } from '../operations/stop.ts'
import { update } from '../operations/update.ts'
import { createReclaim } from '../reclaim/reclaim.ts'
import { reclaimRequest, reclaimView } from '../reclaim/view.ts'
import type { MemoryReclaim, ReclaimMemory } from '../reclaim/schemas.ts'
import { createFamily, type Family } from './family.ts'
import { pathInfo } from './path-info.ts'
import { requireReachable } from '../host/reachable.ts'
import type { AttachVolume, CreateInstance, EgressLog, EgressTrial, EgressVerdict, ForkInstance, InstanceStats, LOG_SOURCES, PathInfo, StandbyInstance, StartInstance, UpdateInstance, WaitAnswer } from './schemas.ts'
import { serveCp } from '../sockets/cp.ts'
import { serveExec } from '../sockets/exec.ts'
import { serveForward } from '../sockets/forward.ts'
import { statsOf } from './stats.ts'
import { attachmentOf, changesOf, createRequestOf, forkRequestOf } from '../validate/request.ts'
import { checkStandby } from '../validate/standby.ts'
import { wantedFor } from '../compression/compression-for.ts'
import { attachVolume } from '../volumes/attach.ts'
import { detachVolume } from '../volumes/detach.ts'
import { serveWait } from './wait.ts'
import { removeAbandoned } from '../workers/abandoned.ts'

const STAT_AGENT_WAIT_MS = 5000
/** A guest may never answer: it is hostile or hangs, or the path leads to a file system that does. */
const STAT_MS = 10_000
const DEFAULT_TAIL = 100

export interface LogsRequest {
  readonly source?: typeof LOG_SOURCES[number]
  readonly tail?: number
  readonly follow?: boolean
}

export interface Instances extends Family {
  open (): Promise<void>
  /** @param end whether the VMs end with the server */
  close (end: boolean): Promise<void>
  /** Ends what is streamed or waited for, so that the server can drain. */
  interrupt (): void
  /** @param caller the id of the API key that asks, here and below */
  create (body: CreateInstance, caller?: string): Promise<LiveInstance>
  all (): readonly LiveInstance[]
  find (ref: string): LiveInstance
  update (ref: string, body: UpdateInstance): Promise<LiveInstance>
  start (ref: string, body: StartInstance, caller?: string): Promise<LiveInstance>
  stop (ref: string): Promise<LiveInstance>
  standby (ref: string, body: StandbyInstance): Promise<LiveInstance>
  restore (ref: string, caller?: string): Promise<LiveInstance>
  fork (ref: string, body: ForkInstance, caller?: string): Promise<LiveInstance>
  attachVolume (ref: string, volume: string, body: AttachVolume): Promise<LiveInstance>
  detachVolume (ref: string, volume: string): Promise<LiveInstance>
  delete (ref: string, graceful: boolean): Promise<void>
  wait (ref: string, query: { state?: string, timeout?: string }, signal: AbortSignal): Promise<WaitAnswer>
  stats (ref: string): Promise<InstanceStats>
  autoStandby (ref: string): Promise<AutoStandbyStatus>
  /** Keeps the instance from auto-standby for the length of its idle timeout. */
  holdAwake (ref: string): Promise<AutoStandbyStatus>
  /** what the proxy has logged of the instance */
  egressLog (ref: string, request: EgressLogRequest): Promise<EgressLog>
  tryEgress (trial: EgressTrial): Promise<EgressVerdict>
  stat (ref: string, path: string, followLinks: boolean, signal: AbortSignal): Promise<PathInfo>
  logs (ref: string, request: LogsRequest, signal: AbortSignal): Readable
  exec (ref: string, socket: WebSocket): Promise<void>
  cp (ref: string, socket: WebSocket): Promise<void>
  forward (ref: string, port: number, socket: WebSocket): Promise<void>
  capabilities (): Promise<Capabilities>
  reclaimMemory (body: ReclaimMemory): Promise<MemoryReclaim>
}

export function createInstances (context: Context, server: CapabilitySources['server']): Instances {
  const { instances, locks, metrics, settings, templates } = context
  const { until, interrupt } = interruptions(context.starts)
  const idle = createIdleWatch(context)
  const reclaim = createReclaim(context)
  let rotation: { stop (): void } | undefined
  let guard: LogGuard | undefined
  let endWatch = (): void => {}
  let leaveRegister = (): void => {}

  const locked = async <T> (ref: string, name: string, work: (instance: LiveInstance) => Promise<T>): Promise<T> => await lockedIn(context, ref, name, work)

  const stats = async (instance: LiveInstance): Promise<InstanceStats> => await statsOf(instance, context.network, context.kept.find(instance.id)?.vm)

  const awake = async (ref: string, reason: string, work: (instance: LiveInstance) => Promise<void>): Promise<void> => {
    const instance = instances.find(ref)
    const lease = context.leases.take(instance.id, reason)
    try {
      await work(instance)
    } finally {
      lease.release()
    }
  }

  return {
    async open () {
      if (context.separateUsers) await requireReachable(context.dataDir)
      await makeInstancesFolder(instancesFolder(context.dataDir))
      leaveRegister = registerVmms(context)
      guard = startLogGuard(instancesFolder(context.dataDir), settings.logs.maxBytes, context.log, context.processes)
      await adoptAll(context)
      removeAbandoned(context)
      reclaim.open()
      endWatch = await adoptLives(context)
      idle.open()
      await templates.open()
      rotation = startRotation(context)
    },

    async close (end) {
      interrupt()
      context.closing.abort()
      endWatch()
      for (const { stop: monitor } of context.monitors.values()) monitor.abort()
      context.alarms.close()
      await Promise.all([idle.close(), reclaim.close()])
      rotation?.stop()
      await Promise.all([context.compressions.close(), context.spares.close(), context.kept.close()])
      await Promise.all(instances.all().map(async (instance) => {
        // One that cannot be ended keeps no other from ending in order.
        if (end) await locks.hold(instance.id, async () => { await endVm(instance, settings.deleteGraceMs) }).catch((error: unknown) => { context.log.error({ err: error, instance: instance.id }, 'an instance could not be ended with the server') })
        await instance.settling
        await instance.written()
        instance.session?.release()
      }))
      await context.behind.allOver()
      leaveRegister()
      await guard?.stop()
    },

    interrupt, ...createFamily(context),

    async create (body, caller) {
      if (body.platform !== undefined) context.images.requirePlatform(body.platform)
      return await create(context, createRequestOf(body, settings, caller))
    },
    all: () => instances.all(),
    find: (ref) => instances.find(ref),

    update: async (ref, body) => await locked(ref, 'update', async (instance) => {
      await metrics.timed('update', async () => { await update(context, instance, changesOf(body, instance.record.spec)) })
      return instance
    }),

    start: async (ref, body, caller) => await locked(ref, 'start', async (instance) => {
      await metrics.timed('start', async () => { await start(context, instance, body, { caller }) })
      return instance
    }),

    stop: async (ref) => await locked(ref, 'stop', async (instance) => {
      await metrics.timed('stop', async () => { await stop(context, instance) })
      return instance
    }),

    async standby (ref, body) {
      const asked = checkStandby(body)
      return await locked(ref, 'standby', async (instance) => {
        await metrics.timed('standby', async () => { await standby(context, instance, wantedFor(asked, instance.record.spec, settings.compression)) })
        return instance
      })
    },

    restore: async (ref, caller) => await locked(ref, 'restore', async (instance) => {
      await metrics.timed('restore', async () => {
        // A kept VM takes a processor for a moment only, so its restore waits for no turn.
        if (context.kept.find(instance.id) === undefined) await inTurn(context, caller, async () => { await restore(context, instance) })
        else await restore(context, instance)
      })
      return instance
    }),

    fork: async (ref, body, caller) => await metrics.timed('fork', async () => {
      const fork = await locked(ref, 'fork', async (source) => await beginFork(context, source, forkRequestOf(body, caller)))
      // The lock of the source is free again.
      return await finishFork(context, fork)
    }),

    attachVolume: async (ref, volume, body) => await locked(ref, 'attach volume', async (instance) => {
      await metrics.timed('attach-volume', async () => { await attachVolume(context, instance, volume, attachmentOf(body)) })
      return instance
    }),

    detachVolume: async (ref, volume) => await locked(ref, 'detach volume', async (instance) => {
      await metrics.timed('detach-volume', async () => { await detachVolume(context, instance, volume) })
      return instance
    }),

    async delete (ref, graceful) {
      const { id } = instances.find(ref)
      // Not logged in the operations log: that goes with the instance.
      await locks.hold(id, async () => {
        await metrics.timed('delete', async () => { await remove(context, instances.get(id), graceful ? settings.deleteGraceMs : 0) })
      })
    },

    wait: async (ref, query, signal) => await serveWait(instances.find(ref), query, signal, until(signal)),
    stats: async (ref) => await stats(instances.find(ref)),

    autoStandby: async (ref) => await autoStandbyStatus(context, idle, instances.find(ref)),

    async holdAwake (ref) {
      const kept = idle.keep(instances.find(ref).id)
      try {
        const held = await locked(ref, 'hold', async (instance) => {
          await holdAwake(instance)
          return instance
        })
        return await autoStandbyStatus(context, idle, held)
      } finally {
        kept.release()
      }
    },

    async egressLog (ref, request) {
      const instance = instances.find(ref)
      requireOwn('egress', instance)
      return await egressLogOf(context, instance, request)
    },

    tryEgress: async (trial) => await tryEgress(context, trial),

    async stat (ref, path, followLinks, signal) {
      const instance = instances.find(ref)
      requireAgent('stat', instance)
      const late = withDeadline(STAT_MS, until(signal))
      const link = await awaitAgent(instance, STAT_AGENT_WAIT_MS, late)
      return await pathInfo(link, path, { follow: followLinks, signal: late }).catch((error: unknown) => { throw late.aborted ? AgentUnavailable.from(error, instance.name) : error })
    },

    logs (ref, request, signal) {
      const instance = instances.find(ref)
      requireOwn('logs', instance)
      return openLog(context, instance, request, request.follow === true ? until(signal) : signal)
    },

    exec: async (ref, socket) => { await awake(ref, 'exec', async (instance) => { await serveExec(context, instance, socket) }) },
    cp: async (ref, socket) => { await awake(ref, 'cp', async (instance) => { await serveCp(context, instance, socket) }) },
    forward: async (ref, port, socket) => { await awake(ref, 'forward', async (instance) => { await serveForward(context, instance, port, socket) }) },
    capabilities: async () => await capabilitiesOf({ server, settings, plugins: context.plugins, hypervisors: context.hypervisors, network: context.network?.facts, cgroups: context.resources?.cgroups() }),
    reclaimMemory: async (body) => reclaimView(await reclaim.run(reclaimRequest(body)))
  }
}

/** Signals that abort with a request or with the server. Not AbortSignal.any, which would tie each request to the server's life. */
function interruptions (starts: Pick<Starts, 'refuse'>): { until (signal: AbortSignal): AbortSignal, interrupt (): void } {
  const open = new Set<AbortController>()
  let interrupted = false
  return {
    until (signal) {
      const controller = new AbortController()
      const end = (): void => {
        open.delete(controller)
        controller.abort()
      }
      open.add(controller)
      signal.addEventListener('abort', end, { once: true })
      if (signal.aborted || interrupted) end()
      return controller.signal
    },
    interrupt () {
      interrupted = true
      starts.refuse()
      for (const controller of open) controller.abort()
    }
  }
}

/** The events of a log; with `follow` until the instance has stopped and every line is out, as `docker logs -f` does. */
function openLog (context: Context, instance: LiveInstance, request: LogsRequest, signal: AbortSignal): Readable {
  const { source = 'app', tail = DEFAULT_TAIL, follow = false } = request
  const paths = pathsIn(context, instance.id)
  const path = { app: paths.output, vmm: paths.vmm, hypeman: paths.operations, berth: paths.operations }[source]
  const wake = new Signal()
  const unsubscribe = instance.onChange(() => { wake.notify() })
  const stream = sseStream({
    path,
    tail,
    goesOn: () => follow && !instance.deleted && instance.state !== 'Stopped',
    wake,
    signal,
    heartbeatMs: context.settings.logs.heartbeatMs
  }, source === 'vmm')
  const lease = follow ? context.leases.take(instance.id, 'followed log') : undefined
  stream.once('close', () => {
    unsubscribe()
    lease?.release()
  })
  return stream
}
