// The conversation with the guest of a scripted VM.
import { PassThrough, type Duplex } from 'node:stream'
import type { VmState } from '../../../core/library/hypervisor.ts'
import type { ExecSpec, GuestEntry, GuestHello, GuestLink, PathFacts } from '../../../plugins/guest/contract.ts'
import { ScriptedExec } from './scripted-exec.ts'
import type { ImagingStep, ScriptedStream, ScriptedVm } from './scripted-vm.ts'

/** What the host says of its guests. */
export interface GuestScript {
  readonly behaviour: 'run' | 'boot-only'
  readonly onConnect: ((port: number, address: string, signal: AbortSignal) => Promise<Duplex | undefined>) | undefined
  readonly onExec: ((session: ScriptedExec, spec: ExecSpec) => void) | undefined
  readonly answersFiles: boolean
  readonly runRefusal: Error | undefined
  readonly files: ReadonlyMap<string, PathFacts>
  readonly entries: readonly GuestEntry[]
  step (step: ImagingStep, vm: ScriptedVm): Promise<void>
}

export function linkTo (stream: ScriptedStream, host: GuestScript): GuestLink {
  const { vm } = stream
  const { promise: closed, resolve } = deferred<string>()
  let isOpen = true
  const close = (reason: string): void => {
    if (isOpen) vm.connections--
    isOpen = false
    stream.destroy()
    resolve(reason)
  }
  vm.connections++
  vm.bus.on('state', (state: VmState) => { if (state.status === 'gone') close('the VM is gone') })
  stream.once('close', () => { close('the stream ended') })
  vm.bus.on('unlink', () => { close('unlinked') })
  return {
    closed,
    close: () => { close('closed') },
    hello: host.behaviour === 'boot-only' && vm.phase === 'waiting' && vm.workload === undefined ? new Promise<GuestHello>(() => {}) : Promise.resolve(hello(vm)),
    async run (workload) {
      if (host.runRefusal !== undefined) throw host.runRefusal
      vm.workload = workload
      for (const mount of workload.mounts) vm.mounts.set(mount.device, mount)
      vm.phase = 'starting'
      if (host.behaviour === 'run') return vm.begin()
      await new Promise<void>((resolve) => { vm.bus.once('started', () => { resolve() }) })
    },
    flush: async () => {
      await host.step('flush', vm)
      await host.step('flushed', vm)
    },
    sleep: async () => {
      await host.step('sleep', vm)
      vm.phase = 'asleep'
      await host.step('slept', vm)
    },
    wake: async (identity = {}) => {
      await host.step('wake', vm)
      vm.wakes.push(identity)
      vm.phase = 'running'
      await host.step('woken', vm)
    },
    rehearse: async ({ network } = {}) => {
      await host.step('rehearse', vm)
      vm.rehearsals++
      vm.rehearsedNetwork = network
      await host.step('rehearsed', vm)
    },
    bind: async () => {
      await host.step('bind', vm)
      vm.isBound = true
      await host.step('bound', vm)
    },
    mount: async (mount) => {
      await host.step('mount', vm)
      if (!vm.disks.has(mount.device.replace('serial:', ''))) throw Object.assign(new Error(`the disk ${mount.device} is missing`), { code: 'guest_refused', errno: 19 })
      vm.mounts.set(mount.device, mount)
      await host.step('mounted', vm)
    },
    unmount: async ({ device }) => {
      await host.step('unmount', vm)
      if (vm.busy.has(device)) throw Object.assign(new Error(`${vm.mounts.get(device)?.path ?? ''} is in use in the guest`), { code: 'guest_refused', errno: 16 })
      vm.mounts.delete(device)
      await host.step('unmounted', vm)
    },
    onStarted: (listener) => subscribe(vm, 'started', listener, vm.phase === 'running' || vm.phase === 'asleep'),
    onExited: (listener) => subscribe(vm, 'exited', listener, false),
    async listen (port, accept) {
      vm.ports.set(port, accept)
      return { close: () => { vm.ports.delete(port) } }
    },
    async connect (port, { address = '127.0.0.1', signal }) {
      const connection = await host.onConnect?.(port, address, signal)
      if (connection === undefined) throw Object.assign(new Error('Connection refused'), { code: 'guest_refused', errno: 111 })
      return connection
    },
    async shutdown (graceMs) {
      vm.shutdowns.push(graceMs)
      await host.step('shutdown', vm)
      vm.exit({ exitCode: 143, signal: 15 }).catch((error: unknown) => { throw error })
    },
    exec (spec) {
      const session = new ScriptedExec()
      vm.execs.push({ spec, session })
      host.onExec?.(session, spec)
      return session
    },
    stat: async (path, { signal }) => host.answersFiles ? host.files.get(path) ?? { exists: false } : await never(vm, `stat ${path}`, signal),
    put (spec) {
      const content = new PassThrough()
      const chunks: Buffer[] = []
      content.on('data', (chunk: Buffer) => { chunks.push(chunk) })
      const { promise: result, resolve, reject } = deferred<{ bytes: number }>()
      content.on('end', () => {
        const bytes = Buffer.concat(chunks)
        if (spec.path === '/denied') return reject(Object.assign(new Error('permission denied'), { code: 'guest_refused', errno: 13 }))
        if (!host.answersFiles) return
        vm.puts.push({ spec, bytes })
        resolve({ bytes: bytes.length })
      })
      return {
        content,
        result,
        cancel: () => {
          vm.cancelled.push(`put ${spec.path}`)
          content.destroy()
        }
      }
    },
    async * get (path, { signal }) {
      if (!host.answersFiles) await never(vm, `get ${path}`, signal)
      if (host.entries.length === 0) throw Object.assign(new Error(`${path}: no such file or directory`), { code: 'guest_refused', errno: 2 })
      yield * host.entries
    }
  }
}

/** What the guest does not answer, until its caller gives it up. */
async function never (vm: ScriptedVm, call: string, signal: AbortSignal | undefined): Promise<never> {
  return await new Promise<never>((_resolve, reject) => {
    signal?.addEventListener('abort', () => {
      vm.cancelled.push(call)
      reject(signal.reason instanceof Error ? signal.reason : new Error('aborted'))
    })
  })
}

function deferred<T> (): { promise: Promise<T>, resolve: (value: T) => void, reject: (error: Error) => void } {
  let resolve: (value: T) => void = () => {}
  let reject: (error: Error) => void = () => {}
  const promise = new Promise<T>((_resolve, _reject) => {
    resolve = _resolve
    reject = _reject
  })
  return { promise, resolve, reject }
}

function hello (vm: ScriptedVm): GuestHello {
  return { protocol: 1, phase: vm.phase, kernel: '6.1.0', bootId: 'x', memoryTotalBytes: 1, uptimeMs: 1, agent: true }
}

function subscribe<A extends unknown[]> (vm: ScriptedVm, event: string, listener: (...args: A) => void, already: boolean): () => void {
  vm.bus.on(event, listener)
  if (already) Reflect.apply(listener, undefined, [])
  return () => { vm.bus.off(event, listener) }
}
