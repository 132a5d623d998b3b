// VMs of the server itself, for templates and as spare VMs. Each has a row like an instance, which reserves its user and lets the next start of the server
// remove it after a crash. The row has a name that no request can have, and is in no list.
import { createUndo } from '../../../core/undo.ts'
import { identityOf, pathsIn, type BaseContext } from '../context.ts'
import { makeFolder, makeLogs, removeFiles } from '../folder/files.ts'
import { allDone, insertRow } from '../operations/insert.ts'
import { removeRow } from '../operations/remove-row.ts'
import { connectParts, reserveParts } from '../parts/all.ts'
import type { InstanceSpec } from '../model/record.ts'
import type { Hidden } from './contract.ts'

/** Undefined when no user is left for it. */
export async function makeHidden (context: BaseContext, spec: InstanceSpec): Promise<Hidden | undefined> {
  const record = await insertRow(context, (id) => `~${id}`, spec, { name: '', digest: '' })
  if (record === undefined) return undefined
  context.hidden.add(record)
  const paths = pathsIn(context, record.id)
  const undo = createUndo()
  undo.add(() => { context.hidden.delete(record) })
  undo.add(async () => { await removeRow(context, record.id) })
  const remove = async (): Promise<void> => {
    for (const failure of await undo.run()) context.log.error({ err: failure, vm: record.id }, 'a VM of the server itself could not be removed wholly')
  }
  try {
    await reserveParts(context, record, 'hidden', undo)
    undo.add(async () => { await removeFiles(paths) })
    await makeFolder(paths)
    const connecting = connectParts(context, record)
    await allDone([makeLogs(paths, identityOf(context, record)), connecting])
    return { record, paths, connection: await connecting, remove }
  } catch (error) {
    await remove()
    throw error
  }
}
