// Puts another image in the place of a disk of a running VM: QEMU opens the new one beside the old, moves the device over, and closes the old one.
import { createUndo } from '../../core/undo.ts'
import { diskDevice, diskNode, diskNodes } from './args.ts'
import { isRecord, type QmpClient } from './client.ts'
import { QmpRefused, SpecInvalid } from './errors.ts'

const COMMAND_TIMEOUT_MS = 5000

/**
 * Resolves when QEMU has let go of the old image; when it rejects, the disk is as before. A replacement that a crash of the server
 * cut off is no hindrance: what it has opened is closed first.
 */
export async function replaceDisk (qmp: QmpClient, id: string, path: string): Promise<void> {
  const now = await currentNode(qmp, id)
  const next = diskNodes(id).find((name) => name !== now.name) ?? now.name
  await closeNode(qmp, next).catch(ignoreRefusal)
  await qmp.execute('blockdev-add', diskNode(next, { path, readonly: now.readonly }), COMMAND_TIMEOUT_MS)
  const undo = createUndo()
  undo.add(() => closeNode(qmp, next))
  try {
    await attach(qmp, id, next)
    undo.add(() => attach(qmp, id, now.name))
    await closeNode(qmp, now.name)
    undo.drop()
  } catch (error) {
    await undo.run()
    throw error
  }
}

/** The device goes on with that image, whatever the guest does. Never the one that it has: QEMU 7.2 ends by an assertion then. */
async function attach (qmp: QmpClient, id: string, node: string): Promise<void> {
  await qmp.execute('qom-set', { path: `/machine/peripheral/${diskDevice(id)}`, property: 'drive', value: node }, COMMAND_TIMEOUT_MS)
}

async function closeNode (qmp: QmpClient, name: string): Promise<void> {
  await qmp.execute('blockdev-del', { 'node-name': name }, COMMAND_TIMEOUT_MS)
}

function ignoreRefusal (error: unknown): void {
  if (!QmpRefused.is(error)) throw error
}

interface Node { readonly name: string, readonly readonly: boolean }

async function currentNode (qmp: QmpClient, id: string): Promise<Node> {
  const answer = await qmp.execute('query-block', {}, COMMAND_TIMEOUT_MS)
  const devices: readonly unknown[] = Array.isArray(answer) ? answer : []
  const found = devices.filter(isRecord).find(({ qdev }) => typeof qdev === 'string' && qdev.split('/').includes(diskDevice(id)))
  const inserted = isRecord(found?.['inserted']) ? found['inserted'] : {}
  const { 'node-name': name, ro } = inserted
  if (typeof name !== 'string' || typeof ro !== 'boolean' || !diskNodes(id).includes(name)) throw SpecInvalid(`it has no disk "${id}"`)
  return { name, readonly: ro }
}
