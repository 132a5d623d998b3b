// Starts a VM whose VMM has a REST API: its folder, its process, its first answer, its requests. When a step fails, everything is undone.
import { stat } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { endProcess } from '../../process/end.ts'
import { createUndo } from '../../undo.ts'
import type { MemoryImage, VmHandle, VmSpec } from '../hypervisor.ts'
import { growingPauseMs } from './growing-pause.ts'
import { ImageDamaged, LaunchFailed, RestoreFailed, SpecInvalid, VmmRefused, VmmUnreachable } from './errors.ts'
import { makeHandle, type ImageFacts } from './handle.ts'
import { checkNamespace, tapProblem } from './network.ts'
import { checkVersion } from './other-version.ts'
import { linkOutput, outputArgs, outputEnded, OUTPUT_PROGRAM } from './output.ts'
import { mayListenLater, type RestClient, type RestMethod } from './rest-client.ts'
import type { RestVm } from './rest-vm.ts'
import type { RunFolder } from './run-folder.ts'
import { startVmm, type Vmm } from './start.ts'

const END_TIMEOUT_MS = 3000

export interface RestRequest { readonly method: RestMethod, readonly path: string, readonly body?: object }

export interface RestLaunch {
  /** name of the VMM, in errors */
  readonly name: string
  readonly driver: string
  readonly vmmVersion: string
  /** the program and its arguments, run in the folder */
  readonly command: readonly [string, ...string[]]
  /** capabilities of a program that becomes the VMM, and its user, by itself; absent: it has the user from the beginning, and none */
  readonly capabilities?: readonly string[]
  readonly folder: RunFolder
  readonly client: RestClient
  /** name of the socket for the guest's vsock, in the folder's room */
  readonly vsock: string
  /** names of links to disks and other files, and their targets */
  readonly links: Readonly<Record<string, string>>
  /** path of a request that the VMM answers as soon as it serves */
  readonly ping: string
  /** The version in its answer, in the form in which `--version` says it; undefined: it has none. */
  readonly versionIn?: (answer: unknown) => string | undefined
  /** time for the first answer, `ms` */
  readonly timeoutMs: number
  readonly facts: ImageFacts
  /** further data for the driver in the handle */
  readonly details?: Readonly<Record<string, unknown>>
  /** Sends the requests that set the VM up and start it; resolves when its guest runs. */
  readonly fill: (handle: VmHandle) => Promise<void>
  readonly makeVm: (handle: VmHandle) => RestVm
  /** receives errors that no caller waits for */
  readonly onError: (error: unknown) => void
}

export async function bringUp (spec: VmSpec, launch: RestLaunch, signal: AbortSignal | undefined): Promise<RestVm> {
  const { folder, client, name, driver, vmmVersion, facts, details, command, capabilities } = launch
  if (spec.network !== undefined) await checkNamespace(spec.network)
  await folder.reclaim()
  const undo = createUndo()
  try {
    await folder.make(spec.identity)
    undo.add(async () => { folder.remove() })
    await linkOutput(folder, spec.files)
    for (const [link, target] of Object.entries(launch.links)) await folder.link(link, target)
    const output = outputArgs(relative(folder.path, join(folder.room, launch.vsock)), capabilities === undefined ? undefined : spec.identity)
    const vmm = await startVmm(spec, {
      name, binary: OUTPUT_PROGRAM, args: [...output, ...command], accelerator: 'kvm', folder: folder.path, printed: () => outputEnded(folder), ...capabilities === undefined ? {} : { capabilities }
    })
    undo.add(() => outputEnded(folder))
    undo.add(() => endProcess(vmm.identity))
    const answer = await firstAnswer(vmm, launch, signal)
    checkVersion(launch.versionIn?.(answer), launch)
    // A VMM that ends during a request says why only in its own output.
    const handle = makeHandle({ driver, process: vmm.identity, directory: spec.directory, vmmVersion, image: facts, details })
    await launch.fill(handle).catch(async (error: unknown) => {
      if (VmmUnreachable.is(error)) await endOf(vmm)
      await vmm.check()
      throw explained(error, spec.network)
    })
    const vm = launch.makeVm(handle)
    vmm.exited.then(() => vm.notice(), launch.onError)
    undo.drop()
    return vm
  } catch (error) {
    await undo.run()
    throw signal?.aborted === true ? signal.reason : error
  }

  async function firstAnswer (vmm: Vmm, { ping, timeoutMs }: RestLaunch, signal: AbortSignal | undefined): Promise<unknown> {
    const began = performance.now()
    const deadline = began + timeoutMs
    for (;;) {
      signal?.throwIfAborted()
      await vmm.check()
      if (performance.now() > deadline) throw LaunchFailed(`${name} did not answer within ${timeoutMs} ms: ${await vmm.lastWords()}`)
      try {
        return await client.ask('GET', ping, undefined, Math.max(1, Math.ceil(deadline - performance.now())))
      } catch (error) {
        if (!mayListenLater(error)) throw error
      }
      await sleep(growingPauseMs(performance.now() - began))
    }
  }
}

/** Waits for the end of a VMM that has ended its connections, which it does some time before its end is known. */
async function endOf ({ exited }: Vmm): Promise<void> {
  const known = new AbortController()
  await Promise.race([exited, sleep(END_TIMEOUT_MS, undefined, { signal: known.signal })])
  known.abort()
}

/** Names the TAP when it could not be opened, since the VMM does not; any other error stays as it is. */
function explained (error: unknown, network: VmSpec['network']): unknown {
  if (network === undefined || !(VmmRefused.is(error) || RestoreFailed.is(error))) return error
  const problem = tapProblem(error.message, network)
  return problem === undefined ? error : LaunchFailed.from(error, `${problem}: ${error.message}`)
}

/** Sends requests one after the other. */
export async function send (client: RestClient, requests: readonly RestRequest[], timeoutMs: number, signal: AbortSignal | undefined): Promise<void> {
  for (const { method, path, body } of requests) {
    signal?.throwIfAborted()
    await client.ask(method, path, body, timeoutMs)
  }
}

/** The same for a restore: a request that the VMM refuses is the restore's failure. */
export async function sendToRestore (...args: Parameters<typeof send>): Promise<void> {
  await send(...args).catch((error: unknown) => { throw VmmRefused.is(error) ? RestoreFailed.from(error, error.message) : error })
}

/** Throws, and names the file, unless the guest's kernel and initial file system are there: a VMM's own error names a link, or no file. */
export async function checkKernel ({ kernel: { path, initrd } }: VmSpec): Promise<void> {
  for (const file of [path, initrd]) await stat(file).catch((error: unknown) => { throw LaunchFailed.from(error, error instanceof Error ? error.message : String(error)) })
}

/** Throws unless both files of an image have their original size. */
export async function checkImageFiles (image: MemoryImage, statePath: string, memoryPath: string, memoryBytes: number): Promise<void> {
  const state = await stat(statePath)
  if (state.size !== image.stateBytes) throw ImageDamaged(`the state file ${statePath} has ${state.size} bytes of ${image.stateBytes}`)
  const memory = await stat(memoryPath)
  if (!memory.isFile() || memory.size !== memoryBytes) throw SpecInvalid(`the memory file ${memoryPath} has ${memory.size} bytes, and must have ${memoryBytes}`)
}
