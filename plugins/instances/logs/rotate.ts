// Keeps the files that a VMM writes within bounds while the server runs.
import { rename } from 'node:fs/promises'
import type { Vm } from '../../../core/library/hypervisor.ts'
import { identityOf, pathsIn, type Context } from '../context.ts'
import { makeFile, sizeOf } from '../folder/files.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { rotatedPath, type InstancePaths } from '../folder/paths.ts'

/** A report is at most 4 KiB; a guest that writes on and on into it attacks the disk. The guard keeps the file below this size, but the size still tells of it. */
export const REPORT_FLOOD_BYTES = 64 * 1024

/** VMs of which a log was renamed and that may not write to the new one yet. */
const unfinished = new WeakSet<Vm>()

/** Looks at all running instances every so often, until it is told to stop. */
export function startRotation (context: Context): { stop (): void } {
  let busy = false
  const timer = setInterval(() => {
    if (busy) return
    busy = true
    checkAll(context).catch((error: unknown) => { context.log.error({ err: error }, 'log sizes could not be checked') })
      .finally(() => { busy = false })
  }, context.settings.logs.checkIntervalMs)
  timer.unref()
  return { stop () { clearInterval(timer) } }
}

/** One round: rotates every log that is too large. */
async function checkAll (context: Context): Promise<void> {
  for (const instance of context.instances.all()) {
    try {
      await check(context, instance)
    } catch (error) {
      context.log.warn({ err: error, instance: instance.id }, 'a log could not be rotated')
    }
  }
}

async function check (context: Context, instance: LiveInstance): Promise<void> {
  const vm = instance.session?.vm
  if (vm === undefined || vm.state.status !== 'running') return
  const paths = pathsIn(context, instance.id)
  // First: a log that cannot be rotated must not spare a guest this.
  if (await sizeOf(paths.report) > REPORT_FLOOD_BYTES) {
    context.log.warn({ instance: instance.id }, 'a guest floods its report; ending its VMM')
    return await vm.kill()
  }
  if (unfinished.has(vm)) await finishRotation(vm, paths, async (path) => { await makeFile(path, identityOf(context, instance.record)) })
  for (const file of ['output', 'vmm'] as const) {
    if (await sizeOf(paths[file]) > context.settings.logs.maxBytes) await rotate(context, instance, vm, file)
  }
}

async function rotate (context: Context, instance: LiveInstance, vm: Vm, file: 'output' | 'vmm'): Promise<void> {
  const path = pathsIn(context, instance.id)[file]
  unfinished.add(vm)
  // The VMM goes on in the renamed file until it is told about the new one, so no byte is lost.
  await rename(path, rotatedPath(path))
  await makeFile(path, identityOf(context, instance.record))
  await vm.rotate(file, path)
  unfinished.delete(vm)
}

/** Completes a rotation that failed midway, or that a killed server has begun: the VMM still writes to the renamed file. When it fails, the next round tries again. */
export async function finishRotation (vm: Vm, paths: InstancePaths, make: (path: string) => Promise<void>): Promise<void> {
  unfinished.add(vm)
  for (const file of ['output', 'vmm'] as const) {
    const path = paths[file]
    if (await sizeOf(rotatedPath(path)) === 0 || await sizeOf(path) > 0) continue
    await make(path)
    await vm.rotate(file, path)
  }
  unfinished.delete(vm)
}
