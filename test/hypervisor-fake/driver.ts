// The scripted driver: starts a process per VM that behaves as its script says. For lifecycle and failure cases that no real VMM gives on demand.
import { spawn } from 'node:child_process'
import { chown, mkdir, open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { HypervisorDriver, HypervisorName, VmSpec } from '../../core/contracts/hypervisor.ts'
import type { ProcessIdentity } from '../../core/contracts/services.ts'
import { isAlive, readIdentity, signalProcess } from '../../core/process/identity.ts'
import { createUndo } from '../../core/undo.ts'
import { FakeControl } from './control.ts'
import { FOLDER, type FakeScript, type FakeVmmOrder } from './script.ts'
import { FakeVm } from './vm.ts'

const VMM = fileURLToPath(new URL('vmm.js', import.meta.url))
const VERSION = '1.0'

/** @param script read at each launch, so that a test can change it between two */
export function createFakeDriver (name: HypervisorName, script: () => FakeScript | Promise<FakeScript>): HypervisorDriver {
  return {
    name,
    async probe () {
      return { supported: true, version: VERSION, acceleration: 'tcg', reason: 'a fake runs nothing' }
    },
    async launch (spec, signal) {
      signal?.throwIfAborted()
      return launch(name, spec, await script(), signal)
    },
    async attach (handle) {
      if (isAlive(handle)) {
        const vm = new FakeVm(handle, { status: 'hung', reason: 'the fake VMM has not been asked yet' })
        await vm.known
        return vm
      }
      await rm(join(handle.directory, FOLDER), { recursive: true, force: true })
      return new FakeVm(handle, { status: 'gone' })
    }
  }
}

async function launch (name: HypervisorName, spec: VmSpec, script: FakeScript, signal: AbortSignal | undefined): Promise<FakeVm> {
  const undo = createUndo()
  try {
    if (script.launchDelayMs !== undefined) await sleep(script.launchDelayMs, undefined, signal === undefined ? {} : { signal })
    // What no VMM could boot: a fake would not notice by itself.
    await readFile(spec.kernel.path)
    const folder = join(spec.directory, FOLDER)
    await rm(folder, { recursive: true, force: true })
    await mkdir(folder, { mode: 0o700 })
    undo.add(() => rm(folder, { recursive: true, force: true }))
    if (spec.identity !== undefined) await chown(folder, spec.identity.uid, spec.identity.gid)
    const { identity, exited } = await startVmm(spec, script)
    undo.add(() => end(identity))
    const control = await openControl(spec, exited, signal)
    undo.drop()
    return new FakeVm({ driver: name, version: 1, vmmVersion: VERSION, ...identity, directory: spec.directory }, { status: 'running' }, control)
  } catch (error) {
    await undo.run()
    throw signal?.aborted === true ? signal.reason : error
  }
}

async function startVmm (spec: VmSpec, script: FakeScript): Promise<{ identity: ProcessIdentity, exited: AbortSignal }> {
  const { files, identity, memoryBytes } = spec
  const order: FakeVmmOrder = { script, files, memoryBytes, ...identity === undefined ? {} : { identity } }
  const log = await open(files.vmm, 'a')
  try {
    const child = spawn(process.execPath, [VMM, JSON.stringify(order)], {
      cwd: join(spec.directory, FOLDER), env: {}, detached: true, stdio: ['ignore', log.fd, log.fd]
    })
    child.unref()
    const exited = new AbortController()
    child.once('exit', () => exited.abort())
    child.once('error', () => exited.abort())
    const found = child.pid === undefined ? undefined : readIdentity(child.pid)
    if (found === undefined) throw new Error('the fake VMM did not start')
    return { identity: found, exited: exited.signal }
  } finally {
    await log.close()
  }
}

async function openControl (spec: VmSpec, exited: AbortSignal, signal: AbortSignal | undefined): Promise<FakeControl> {
  for (;;) {
    signal?.throwIfAborted()
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

async function end (identity: ProcessIdentity): Promise<void> {
  signalProcess(identity, 'SIGKILL')
  while (isAlive(identity)) await sleep(1)
}
