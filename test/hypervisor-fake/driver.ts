// The form of the fake driver with processes: starts one per VM, which behaves as its script says. For lifecycle and failure cases that no real VMM gives on demand.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chown, mkdir, open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { HypervisorDriver, MemoryImage, VmMemoryFile, VmSpec } from '../../core/library/hypervisor.ts'
import type { ProcessIdentity } from '../../core/contracts/services.ts'
import { endProcess } from '../../core/process/end.ts'
import { isAlive, readIdentity } from '../../core/process/identity.ts'
import { MemoryInUse, RestoreFailed } from '../../core/library/vmm/errors.ts'
import { processesIn } from '../../setup/server/leftovers.ts'
import { createUndo } from '../../core/undo.ts'
import { FakeControl } from './control.ts'
import { checkBootable, detailsOf, keyFor, VERSION } from './image.ts'
import { loadImage } from './imaging.ts'
import { FOLDER, type FakeScript, type FakeVmmOrder, type SavedGuest } from './script.ts'
import { FakeVm } from './vm.ts'

const VMM = fileURLToPath(new URL('vmm.js', import.meta.url))
const LOCKED = 75

/** @param script read at each launch, so that a test can change it between two */
export function createFakeDriver (name: string, script: () => FakeScript | Promise<FakeScript>): HypervisorDriver {
  return {
    name,
    features: ['removable-disks'],
    async probe () {
      return { supported: true, version: VERSION, acceleration: 'tcg', reason: 'a fake runs nothing' }
    },
    async launch (spec, signal) {
      signal?.throwIfAborted()
      await checkBootable(spec)
      return launch({ name, spec, script }, signal)
    },
    imaging: {
      refusal: async () => (await script()).imagingRefusal,
      async key (spec) {
        return keyFor(spec, VERSION)
      },
      async restore (spec, image, statePath, { signal, beforeRun } = {}) {
        signal?.throwIfAborted()
        const { restoreDelayMs, restoreFailure } = await script()
        const saved = await loadImage({ driver: name, version: VERSION, spec, image, statePath })
        if (restoreDelayMs !== undefined) await sleep(restoreDelayMs, undefined, signal === undefined ? {} : { signal })
        if (restoreFailure !== undefined) throw RestoreFailed(restoreFailure)
        const vm = await launch({ name, spec, script, image, saved }, signal)
        await beforeRun?.(vm.handle).catch(async (error: unknown) => {
          await vm.kill()
          throw error
        })
        return vm
      }
    },
    async attach (handle) {
      if (isAlive(handle)) {
        const vm = new FakeVm(handle, { status: 'hung', reason: 'the fake VMM has not been asked yet' }, script)
        await vm.known
        return vm
      }
      await rm(join(handle.directory, FOLDER), { recursive: true, force: true })
      return new FakeVm(handle, { status: 'gone' }, script)
    }
  }
}

interface Start {
  readonly name: string
  readonly spec: VmSpec
  readonly script: () => FakeScript | Promise<FakeScript>
  readonly image?: MemoryImage
  readonly saved?: SavedGuest
}

async function launch ({ name, spec, script: read, image, saved }: Start, signal: AbortSignal | undefined): Promise<FakeVm> {
  const script = await read()
  const undo = createUndo()
  try {
    if (script.launchDelayMs !== undefined) await sleep(script.launchDelayMs, undefined, signal === undefined ? {} : { signal })
    const folder = join(spec.directory, FOLDER)
    await reclaim(folder)
    await mkdir(folder, { mode: 0o700 })
    undo.add(() => rm(folder, { recursive: true, force: true }))
    if (spec.identity !== undefined) await chown(folder, spec.identity.uid, spec.identity.gid)
    const { identity, exited } = await startVmm(spec, script, saved)
    undo.add(() => endProcess(identity))
    const control = await openControl(spec, exited, signal)
    undo.drop()
    return new FakeVm({ driver: name, version: 1, vmmVersion: VERSION, ...identity, directory: spec.directory, details: detailsOf(spec, VERSION, image) }, { status: 'running' }, read, control)
  } catch (error) {
    await undo.run()
    throw signal?.aborted === true ? signal.reason : error
  }
}

/** Ends what a crashed server has left there. */
async function reclaim (folder: string): Promise<void> {
  if (!existsSync(folder)) return
  for (const { pid } of await processesIn(folder)) {
    const identity = readIdentity(pid)
    if (identity !== undefined) await endProcess(identity)
  }
  await rm(folder, { recursive: true, force: true })
}

/** One writer or many readers, as long as the process lives. */
function memoryLock ({ path, sharing }: VmMemoryFile): string[] {
  return ['flock', sharing === 'shared' ? '--exclusive' : '--shared', '--nonblock', '--no-fork', '--conflict-exit-code', String(LOCKED), path]
}

async function startVmm (spec: VmSpec, script: FakeScript, saved?: SavedGuest): Promise<{ identity: ProcessIdentity, exited: AbortSignal }> {
  const { files, identity, memory, memoryBytes, disks } = spec
  const [file = process.execPath, ...lock] = memory === undefined ? [] : memoryLock(memory)
  const { restoredCrashAfterMs: crashAfterMs } = script
  const order: FakeVmmOrder = { script: saved === undefined || crashAfterMs === undefined ? script : { ...script, crashAfterMs }, files, memoryBytes, disks, ...saved === undefined ? {} : { saved }, ...identity === undefined ? {} : { identity } }
  const log = await open(files.vmm, 'a')
  try {
    const child = spawn(file, [...lock, ...memory === undefined ? [] : [process.execPath], VMM, JSON.stringify(order)], {
      cwd: join(spec.directory, FOLDER), env: {}, detached: true, stdio: ['ignore', log.fd, log.fd]
    })
    child.unref()
    const exited = new AbortController()
    child.once('exit', (code) => exited.abort(code === LOCKED && memory !== undefined ? MemoryInUse(memory.path) : undefined))
    child.once('error', () => exited.abort())
    const found = child.pid === undefined ? undefined : readIdentity(child.pid)
    if (found === undefined) {
      if (!exited.signal.aborted) await once(exited.signal, 'abort')
      throw exited.signal.reason
    }
    return { identity: found, exited: exited.signal }
  } finally {
    await log.close()
  }
}

async function openControl (spec: VmSpec, exited: AbortSignal, signal: AbortSignal | undefined): Promise<FakeControl> {
  for (;;) {
    signal?.throwIfAborted()
    if (exited.aborted && MemoryInUse.is(exited.reason)) throw exited.reason
    if (exited.aborted) throw new Error(`the fake VMM ended: ${(await readFile(spec.files.vmm, 'utf8')).slice(-1000)}`)
    try {
      const control = await FakeControl.open(spec.directory)
      await control.ask({ do: 'status' })
      return control
    } catch (error) {
      if (!(error instanceof Error)) throw error
      await sleep(3)
    }
  }
}
