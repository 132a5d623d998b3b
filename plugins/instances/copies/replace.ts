// Puts an instance back to where a copy was taken from it: its disk and memory are replaced. Its id, name, user and address stay.
import { InvalidRequest } from '../../../core/errors/common.ts'
import type { Context } from '../context.ts'
import type { CopyFiles, CopyRequest, InstanceCopy } from '../contract.ts'
import { namingFullDisk } from '../host/disk-full.ts'
import { ImageMissing } from '../errors.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { restore } from '../operations/restore.ts'
import { start } from '../operations/start.ts'
import { settleImage } from '../memory-image/sync.ts'
import type { InstanceRecord } from '../model/record.ts'
import { admitParts, disconnectParts, specForReplacement } from '../parts/all.ts'
import { requireUser } from '../users/require.ts'
import { checkHypervisor } from '../validate/plugins.ts'
import { replaceUntilDone } from './replace-until-done.ts'
import { gatherReplacement, settleReplacement } from './replacement.ts'
import { planFor, requireActive } from './rules.ts'

const CALL = 'snapshot restore'

/**
 * Needs the lock of the instance. The spec becomes that of the copy, since hypervisor and sizes must fit disk and memory; tags and the values of credentials stay.
 * What cannot be put in place now is put in place later; the VM is started by nobody then. If the VM does not come up in the end, the instance is in the state from which it can be started or restored.
 */
export async function replace (context: Context, instance: LiveInstance, copy: InstanceCopy, files: CopyFiles, request: CopyRequest): Promise<void> {
  if (copy.sourceId !== instance.id) throw InvalidRequest(`${CALL}: the snapshot is not of instance ${instance.name}, but of ${copy.sourceName} (${copy.sourceId})`)
  const { target, withMemory, spec, newMachine } = await planFor(context, CALL, copy, request)
  requireActive(CALL, instance, ['Stopped', 'Standby'])
  const { record } = instance
  if (target === 'Running' && await context.images.byDigest(record.imageDigest) === undefined) throw ImageMissing(record.image)
  const now = Date.now()
  const { tags, egress, source } = record.spec
  const replaced = specForReplacement(context, record.spec, spec, { call: CALL, withMemory })
  // The hypervisor may be another than the instance has now, and than it had then.
  checkHypervisor(replaced, replaced.hypervisor, context)
  const patch = {
    // A secret that was replaced since the copy was taken is not brought back.
    spec: { ...replaced, tags, ...(egress === undefined ? {} : { egress }), ...(source === undefined ? {} : { source }) },
    handle: null,
    // The guest of an instance that was never started is told its identity at its start.
    startedAt: newMachine ? null : record.startedAt,
    runningAt: null,
    stoppedAt: now,
    standbyAt: withMemory ? now : null,
    exit: null
  }
  const work = async (): Promise<void> => {
    try {
      await gatherReplacement(context, instance.record, { copy, files, withMemory, newMachine, patch })
    } catch (error) {
      throw namingFullDisk(CALL, error)
    }
    // A compression may be reading the memory that is about to be removed.
    await context.compressions.cancel(instance.id)
    await replaceUntilDone(context, instance, 'those of a snapshot', async () => { await settleReplacement(context, instance) })
    if (target === 'Standby') return settleImage(context, instance)
    if (target === 'Running') await (withMemory ? restore(context, instance) : start(context, instance, {}))
  }
  if (target === 'Running') await admitted(context, instance, { ...record, spec: patch.spec }, work)
  else await work()
}

/** Asks for another VM before `work`, so that what is refused has changed nothing, and takes that back when `work` fails without one. The start of the VM asks again, and gets what is its own. */
async function admitted (context: Context, instance: LiveInstance, record: InstanceRecord, work: () => Promise<void>): Promise<void> {
  try {
    await requireUser(context, instance)
    await admitParts(context, record)
    await work()
  } catch (error) {
    if (instance.record.handle === null) await disconnectParts(context, instance.record)
    throw error
  }
}
