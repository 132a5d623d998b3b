// Brings a VM up whose VMM has a REST API: its folder, its process, its first answer, what it is asked for. Undoes everything when that does not come about.
import { stat } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { endProcess } from '../../process/end.ts'
import { createUndo } from '../../undo.ts'
import type { MemoryImage, VmHandle, VmSpec } from '../hypervisor.ts'
import { ImageDamaged, LaunchFailed, RestoreFailed, SpecInvalid, VmmRefused } from './errors.ts'
import { makeHandle, type ImageFacts } from './handle.ts'
import { checkNamespace, tapProblem } from './network.ts'
import { linkOutput, outputArgs, outputEnded, OUTPUT_PROGRAM } from './output.ts'
import { mayListenLater, type RestClient, type RestMethod } from './rest-client.ts'
import type { RestVm } from './rest-vm.ts'
import type { RunFolder } from './run-folder.ts'
import { startVmm, type Vmm } from './start.ts'

const CONNECT_PAUSE_MS = 2

export interface RestRequest { readonly method: RestMethod, readonly path: string, readonly body?: object }

export interface RestLaunch {
  /** name of the VMM, in errors */
  readonly name: string
  readonly driver: string
  readonly vmmVersion: string
  /** what is started, within the folder */
  readonly command: readonly [string, ...string[]]
  readonly folder: RunFolder
  readonly client: RestClient
  /** name of the socket for the guest's vsock, in the folder */
  readonly vsock: string
  /** link names of disks, and where they lead */
  readonly links: Readonly<Record<string, string>>
  /** a question that it answers as soon as it serves */
  readonly ping: string
  /** time for that, `ms` */
  readonly timeoutMs: number
  readonly facts: ImageFacts
  /** what the handle tells the driver beside that */
  readonly details?: Readonly<Record<string, unknown>>
  /** Asks for the VM, until its guest runs. */
  readonly fill: (handle: VmHandle) => Promise<void>
  readonly makeVm: (handle: VmHandle) => RestVm
  /** hears what goes wrong where nobody waits */
  readonly onError: (error: unknown) => void
}

export async function bringUp (spec: VmSpec, launch: RestLaunch, signal: AbortSignal | undefined): Promise<RestVm> {
  const { folder, client, name, driver, vmmVersion, facts, details, command } = launch
  if (spec.network !== undefined) await checkNamespace(spec.network)
  await folder.reclaim()
  const undo = createUndo()
  try {
    await folder.make(spec.identity)
    undo.add(async () => { folder.remove() })
    await linkOutput(folder, spec.files)
    for (const [link, target] of Object.entries(launch.links)) await folder.link(link, target)
    const vmm = await startVmm(spec, { name, binary: OUTPUT_PROGRAM, args: [...outputArgs(launch.vsock), ...command], accelerator: 'kvm', folder: folder.path })
    undo.add(() => outputEnded(folder))
    undo.add(() => endProcess(vmm.identity))
    await answers(vmm, launch, signal)
    // A VMM that ends over a request says why only in its own output.
    const handle = makeHandle(driver, vmm.identity, spec.directory, vmmVersion, facts, details)
    await launch.fill(handle).catch(async (error: unknown) => {
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

  async function answers (vmm: Vmm, { ping, timeoutMs }: RestLaunch, signal: AbortSignal | undefined): Promise<void> {
    const deadline = performance.now() + timeoutMs
    for (;;) {
      signal?.throwIfAborted()
      await vmm.check()
      if (performance.now() > deadline) throw LaunchFailed(`${name} did not answer within ${timeoutMs} ms: ${await vmm.lastWords()}`)
      try {
        await client.ask('GET', ping, undefined, Math.max(1, Math.ceil(deadline - performance.now())))
        return
      } catch (error) {
        if (!mayListenLater(error)) throw error
      }
      // Polled, since no event tells of it: the socket's name appears before anyone listens.
      await sleep(CONNECT_PAUSE_MS)
    }
  }
}

/** A TAP that cannot be had is named, which the VMM does not do; all else is as the VMM says it. */
function explained (error: unknown, network: VmSpec['network']): unknown {
  if (network === undefined || !(VmmRefused.is(error) || RestoreFailed.is(error))) return error
  const problem = tapProblem(error.message, network)
  return problem === undefined ? error : LaunchFailed.from(error, `${problem}: ${error.message}`)
}

/** Asks one thing after the other. */
export async function send (client: RestClient, requests: readonly RestRequest[], timeoutMs: number, signal: AbortSignal | undefined): Promise<void> {
  for (const { method, path, body } of requests) {
    signal?.throwIfAborted()
    await client.ask(method, path, body, timeoutMs)
  }
}

/** The same, of a restore: what the VMM refuses is the restore's failure. */
export async function sendToRestore (...args: Parameters<typeof send>): Promise<void> {
  await send(...args).catch((error: unknown) => { throw VmmRefused.is(error) ? RestoreFailed.from(error, error.message) : error })
}

/** Throws unless both files of an image are as large as they were. */
export async function checkImageFiles (image: MemoryImage, statePath: string, memoryPath: string, memoryBytes: number): Promise<void> {
  const state = await stat(statePath)
  if (state.size !== image.stateBytes) throw ImageDamaged(`the state file ${statePath} has ${state.size} bytes of ${image.stateBytes}`)
  const memory = await stat(memoryPath)
  if (!memory.isFile() || memory.size !== memoryBytes) throw SpecInvalid(`the memory file ${memoryPath} has ${memory.size} bytes, and must have ${memoryBytes}`)
}
