// Makes a template: boots a VM of the shape, and captures its memory and state when its guest waits for a workload. Killed between any two steps,
// the next start of the server removes the VM with its row, and the files with their folder, whose name says that it is not whole.
import { mkdir, writeFile } from 'node:fs/promises'
import type { MemoryImage } from '../../../core/library/hypervisor.ts'
import { removeTree } from '../../../core/fs/durable.ts'
import { withRoom } from '../../../core/fs/with-room.ts'
import { pause } from '../../../core/jobs/pause.ts'
import { unlessAborted } from '../../../core/jobs/unless-aborted.ts'
import { syncMemoryImage } from '../../../core/library/memory-image.ts'
import { createUndo } from '../../../core/undo.ts'
import { identityOf, type BaseContext } from '../context.ts'
import { makeOverlay } from '../folder/files.ts'
import { driverOf, vmSpecOf } from '../operations/launch.ts'
import { makeHidden } from '../spares/hidden.ts'
import { linkToPhase } from '../spares/link-to-phase.ts'
import { endWith } from '../spares/spare-vm.ts'
import type { TemplateFiles, TemplatePaths } from './paths.ts'
import { withPlaceholders } from './placeholders.ts'
import { makeRoot } from './root.ts'
import { hiddenSpec } from './shape.ts'
import type { Shape, Template } from './contract.ts'
import { TEMPLATE_VERSION } from './store.ts'

const OVERLAY_BYTES = 16 * 2 ** 20
/** how long a guest that has booted is left alone: its kernel still measures its clock (and stops all processors to change to it), and gives free memory back */
const SETTLE_MS = 3000

/**
 * Writes the files of a template to its folder `.making-…`; when this resolves, they are complete and on disk. Undefined when there is no
 * user left for its VM. The folder is removed when this rejects. @throws DiskShort
 */
export async function buildTemplate (context: BaseContext, paths: TemplatePaths, shape: Shape, signal: AbortSignal): Promise<Template | undefined> {
  return await withRoom(context.disk, [signal], async (either) => await build(context, paths, shape, either))
}

async function build (context: BaseContext, paths: TemplatePaths, shape: Shape, signal: AbortSignal): Promise<Template | undefined> {
  const files = paths.making(shape.key)
  await makeRoot(paths, context.commands, signal)
  await removeTree(files.directory)
  await mkdir(files.directory, { mode: 0o700 })
  try {
    const image = await captureWaiting(context, paths, shape, files, signal)
    if (image === undefined) {
      await removeTree(files.directory)
      return undefined
    }
    const template: Template = { version: TEMPLATE_VERSION, ...shape, image }
    await writeFile(files.manifest, JSON.stringify(template), { mode: 0o600 })
    await syncMemoryImage([files.memory, files.state, files.manifest])
    return template
  } catch (error) {
    await removeTree(files.directory)
    throw error
  }
}

/** Boots a VM until its guest waits for a workload, captures it, and ends it. */
async function captureWaiting (context: BaseContext, paths: TemplatePaths, shape: Shape, files: TemplateFiles, signal: AbortSignal): Promise<MemoryImage | undefined> {
  const undo = createUndo()
  try {
    const hidden = await makeHidden(context, hiddenSpec(shape, OVERLAY_BYTES))
    if (hidden === undefined) return undefined
    const { record } = hidden
    undo.add(hidden.remove)
    await makeOverlay(hidden.paths.overlay, OVERLAY_BYTES, identityOf(context, record), context.commands)
    signal.throwIfAborted()
    const driver = driverOf(context, record)
    const spec = await vmSpecOf(context, record, { rootfs: paths.root }, hidden.connection)
    const isBound = driver.imaging?.announcesDisks === true
    const placeholders = isBound ? await withPlaceholders(spec) : { spec, remove: async () => {} }
    // Its memory is in no file: then it boots faster, and the capture writes no zeros.
    const vm = await driver.launch(placeholders.spec, signal)
    const imaging = endWith(undo, vm)
    await placeholders.remove()
    const link = await linkToPhase(context.guest, vm, 'waiting', signal)
    undo.add(() => { link.close() })
    // So that no clone has to: clones are told of the size of their disks.
    if (isBound) await unlessAborted(signal, link.bind())
    await pause(Math.min(SETTLE_MS, 3 * context.settings.templates.quietMs), signal)
    return await imaging.capture({ statePath: files.state, memoryPath: files.memory }, signal)
  } finally {
    // In every case, since the VM is not needed any more.
    for (const failure of await undo.run()) context.log.error({ err: failure }, 'the VM that a template was made of could not be removed wholly')
  }
}
