// Memory images of fake VMs: two small files that behave like real ones.
import { open, readFile, rm, stat } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { CaptureFiles, MemoryImage, VmHandle, VmImaging, VmSpec } from '../../core/library/hypervisor.ts'
import { CaptureFailed, ImageDamaged, ImageIncompatible, RestoreFailed, SpecInvalid } from '../../core/library/vmm/errors.ts'
import { imageFactsOf, type ImageFacts } from '../../plugins/hypervisor-qemu/handle.ts'
import { keyOf, type Shape } from '../../core/library/vmm/shape.ts'
import type { FakeControl } from './control.ts'
import type { FakeScript, SavedGuest } from './script.ts'

const IMAGE_VERSION = 1
/** where a fake guest's memory holds something */
const CONTENT_AT = 4096

function shapeOf ({ vcpus, memoryBytes, disks, network }: VmSpec, version: string): Shape {
  const device: Shape = network === undefined ? {} : { network: 'fake' }
  return { vmm: `fake ${version}`, cpu: 'fake', ...device, vcpus: String(vcpus), memory: String(memoryBytes), disks: disks.map(({ id, readonly }) => `${id} ${String(readonly)}`).join(', ') }
}

/** What a handle keeps for images. @param image when the VM is made of one */
export function factsOf (spec: VmSpec, version: string, image?: MemoryImage): ImageFacts {
  const shape = shapeOf(spec, version)
  const { vcpus, memoryBytes, memory } = spec
  return { key: image?.key ?? keyOf(shape, spec.kernel.arguments), shape, vcpus, memoryBytes, ...memory?.sharing === 'shared' ? { memoryFile: memory.path } : {} }
}

/** Throws what a real driver would; returns the guest that the files hold. */
export async function loadImage (driver: string, spec: VmSpec, version: string, image: MemoryImage, statePath: string): Promise<SavedGuest> {
  if (spec.memory === undefined) throw SpecInvalid('it names no memory file')
  if (image.driver !== driver || image.version !== IMAGE_VERSION) throw ImageIncompatible(`it was made by the driver ${image.driver}, version ${image.version}`)
  const shape = shapeOf(spec, version)
  const differences = [...new Set([...Object.keys(shape), ...Object.keys(image.shape)])].filter((name) => shape[name] !== image.shape[name])
  if (differences.length > 0) throw ImageIncompatible(differences.map((name) => `its ${name} is "${image.shape[name] ?? 'none'}", the VM's is "${shape[name] ?? 'none'}"`).join('; '))
  if ((await stat(statePath)).size !== image.stateBytes) throw ImageDamaged('the state file was cut')
  if ((await stat(spec.memory.path)).size !== spec.memoryBytes) throw SpecInvalid('the memory file has another size')
  const memory = await readMemory(spec.memory.path)
  try {
    return { ...JSON.parse(await readFile(statePath, 'utf8')), memory }
  } catch (error) {
    if (error instanceof SyntaxError) throw RestoreFailed('the state makes no sense')
    throw error
  }
}

interface Facet {
  readonly handle: VmHandle
  readonly control: () => FakeControl
  readonly script: () => FakeScript | Promise<FakeScript>
  /** Makes the VM's state what the VMM says now. */
  readonly refresh: () => Promise<void>
}

/** A fake VM's `imaging`. */
export function createFakeImaging ({ handle, control, script, refresh }: Facet): VmImaging | undefined {
  const facts = imageFactsOf(handle)
  if (facts === undefined) return undefined
  const order = async (what: 'pause' | 'resume'): Promise<void> => {
    await control().ask({ do: what })
    await refresh()
  }
  return {
    memoryFile: facts.memoryFile,
    pause: () => order('pause'),
    resume: () => order('resume'),
    async capture (files, signal) {
      signal?.throwIfAborted()
      const { status } = await control().ask({ do: 'status' })
      try {
        await order('pause')
        return await write(handle, facts, files, control(), await script(), signal)
      } catch (error) {
        if (status === 'running') await order('resume')
        throw signal?.aborted === true ? signal.reason : error
      }
    }
  }
}

async function write (handle: VmHandle, facts: ImageFacts, { statePath, memoryPath }: CaptureFiles, control: FakeControl, script: FakeScript, signal?: AbortSignal): Promise<MemoryImage> {
  const target = facts.memoryFile ?? memoryPath
  if (target === undefined) throw CaptureFailed('its memory is in no file, and no path for one was given')
  const { saved } = await control.ask({ do: 'save' })
  if (saved === undefined) throw CaptureFailed('the fake VMM saved nothing')
  const { memory, ...state } = saved
  const content = JSON.stringify(state)
  const file = await open(statePath, 'wx', 0o600)
  try {
    await file.writeFile(content)
    if (script.captureDelayMs !== undefined) await sleep(script.captureDelayMs, undefined, signal === undefined ? {} : { signal })
    if (script.captureFailure !== undefined) throw CaptureFailed(script.captureFailure)
    await writeMemory(target, facts, memory)
  } catch (error) {
    await rm(statePath, { force: true })
    throw error
  } finally {
    await file.close()
  }
  const { key, shape, vcpus, memoryBytes } = facts
  const memoryStoredBytes = (await stat(target)).blocks * 512
  return { driver: handle.driver, version: IMAGE_VERSION, vmmVersion: handle.vmmVersion, key, shape, vcpus, memoryBytes, stateBytes: Buffer.byteLength(content), memoryStoredBytes, capturedAt: new Date().toISOString() }
}

async function writeMemory (path: string, facts: ImageFacts, memory: string): Promise<void> {
  const file = await open(path, facts.memoryFile === undefined ? 'wx' : 'r+', 0o600)
  try {
    await file.truncate(facts.memoryBytes)
    await file.write(Buffer.from(memory.padEnd(CONTENT_AT, '\n')), 0, CONTENT_AT, CONTENT_AT)
  } finally {
    await file.close()
  }
}

async function readMemory (path: string): Promise<string> {
  const file = await open(path, 'r')
  try {
    const { buffer } = await file.read(Buffer.alloc(CONTENT_AT), 0, CONTENT_AT, CONTENT_AT)
    return buffer.toString().replaceAll('\0', '').trim()
  } finally {
    await file.close()
  }
}
