// Changes the disks of a running VM. To replace a disk's image, QEMU opens the new one beside the old, moves the device over, and closes the old one.
// Disks that come and go do so on the SCSI bus, which needs neither a slot nor the guest's consent.
import type { VmDisk } from '../../core/library/hypervisor.ts'
import { createUndo } from '../../core/undo.ts'
import { checkRemovable, diskDevice, diskLimits, diskNode, diskNodes, LIMITS_ID, removableDevice } from './args.ts'
import { isRecord } from '../../core/json/is-record.ts'
import { type QmpClient } from './client.ts'
import { SpecInvalid } from '../../core/library/vmm/errors.ts'
import { QmpClosed, QmpRefused, QmpTimeout } from './errors.ts'

const COMMAND_TIMEOUT_MS = 5000

/**
 * Tells guests that have their driver on disks of a paused VM to read the disks' sizes, which they do when they run. QEMU tells them when the image below a disk is given a size. A disk's own image should not be, and
 * cannot where it is only read: so for a moment the disk has another one, a device of the host without a size. The guest does not run meanwhile and sees nothing of that. When it rejects, the disks are in no state to be used.
 */
export async function announceDisks (qmp: QmpClient, ids: readonly string[]): Promise<void> {
  // All at once: QEMU executes commands in their order.
  await Promise.all(ids.flatMap((id) => {
    const [node] = diskNodes(id)
    return [openSizeless(qmp, id), attach(qmp, id, sizeless(id)), resizeSizeless(qmp, id), attach(qmp, id, node), closeNode(qmp, sizeless(id))]
  }))
}

function sizeless (id: string): string {
  return `size-${id}`
}

async function openSizeless (qmp: QmpClient, id: string): Promise<void> {
  // Without locks, which all VMs of the host would share.
  await qmp.execute('blockdev-add', { driver: 'host_device', 'node-name': sizeless(id), filename: '/dev/null', locking: 'off' }, COMMAND_TIMEOUT_MS)
}

async function resizeSizeless (qmp: QmpClient, id: string): Promise<void> {
  await qmp.execute('block_resize', { 'node-name': sizeless(id), size: 0 }, COMMAND_TIMEOUT_MS)
}

/**
 * Resolves when QEMU has closed the old image; when it rejects, the disk is as before. A replacement that a crash of the server
 * interrupted does no harm: the image that it opened is closed first.
 */
export async function replaceDisk (qmp: QmpClient, id: string, path: string): Promise<void> {
  const now = await currentNode(qmp, id)
  const next = diskNodes(id).find((name) => name !== now.name) ?? now.name
  await closeNode(qmp, next).catch(ignoreRefusal)
  await qmp.execute('blockdev-add', diskNode(next, { path, readonly: now.readonly }), COMMAND_TIMEOUT_MS)
  const undo = createUndo()
  undo.add(() => closeNode(qmp, next))
  try {
    await closeNode(qmp, sizeless(id)).catch(ignoreRefusal)
    await openSizeless(qmp, id)
    undo.add(() => closeNode(qmp, sizeless(id)))
    // As in `announceDisks`. A guest that has no driver on the disk takes no notice.
    await attach(qmp, id, sizeless(id))
    undo.add(() => attach(qmp, id, now.name))
    await resizeSizeless(qmp, id)
    await attach(qmp, id, next)
    await closeNode(qmp, now.name)
    undo.drop()
    await closeNode(qmp, sizeless(id))
  } catch (error) {
    await undo.run()
    throw error
  }
}

/** Does nothing for a disk that the VM has; repeats what a crash of the server interrupted. */
export async function plugDisk (qmp: QmpClient, disk: VmDisk): Promise<void> {
  checkRemovable(disk)
  if (await hasDevice(qmp, disk.id)) return
  const [node] = diskNodes(disk.id)
  await closeNode(qmp, node).catch(ignoreRefusal)
  await qmp.execute('blockdev-add', diskNode(node, disk), COMMAND_TIMEOUT_MS)
  const undo = createUndo()
  undo.add(() => closeNode(qmp, node))
  try {
    await qmp.execute('device_add', removableDevice(disk), COMMAND_TIMEOUT_MS)
  } catch (error) {
    await undo.run()
    throw error
  }
}

/** The file is closed when it resolves. Does nothing for a disk that the VM does not have. */
export async function unplugDisk (qmp: QmpClient, id: string): Promise<void> {
  if (await hasDevice(qmp, id)) {
    const gone = deviceGone(qmp, diskDevice(id))
    try {
      await qmp.execute('device_del', { id: diskDevice(id) }, COMMAND_TIMEOUT_MS)
      await gone.done
    } finally {
      gone.stop()
    }
  }
  const [node] = diskNodes(id)
  if (await hasNode(qmp, node)) await closeNode(qmp, node)
}

/** Begins to listen at once: the event may come before the command's answer. */
function deviceGone (qmp: QmpClient, device: string): { readonly done: Promise<void>, stop (): void } {
  let stop = (): void => {}
  const done = new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => { reject(QmpTimeout('device_del', COMMAND_TIMEOUT_MS)) }, COMMAND_TIMEOUT_MS)
    const unsubscribe = qmp.onEvent((name, data) => { if (name === 'DEVICE_DELETED' && data['device'] === device) resolve() })
    qmp.closed.then((reason) => { reject(QmpClosed(reason)) }, reject)
    stop = () => {
      clearTimeout(timer)
      unsubscribe()
    }
  })
  done.catch(() => {})
  return { done, stop: () => { stop() } }
}

async function hasDevice (qmp: QmpClient, id: string): Promise<boolean> {
  return (await devicesOf(qmp)).some(({ qdev }) => isDevice(qdev, id))
}

async function hasNode (qmp: QmpClient, node: string): Promise<boolean> {
  const answer = await qmp.execute('query-named-block-nodes', { flat: true }, COMMAND_TIMEOUT_MS)
  return Array.isArray(answer) && answer.filter(isRecord).some(({ 'node-name': name }) => name === node)
}

/** Changes the limits of all disks at once; `undefined`: none. */
export async function limitDisks (qmp: QmpClient, bytesPerSecond: number | undefined): Promise<void> {
  await qmp.execute('qom-set', { path: `/objects/${LIMITS_ID}`, property: 'limits', value: diskLimits(bytesPerSecond) }, COMMAND_TIMEOUT_MS)
}

/** The device continues with that image, whatever the guest does. Must not be its current image: QEMU 7.2 ends by an assertion then. */
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

/** The current image of a disk. @throws vm_spec_invalid for a disk that the VM does not have */
export async function currentNode (qmp: QmpClient, id: string): Promise<Node> {
  const found = (await devicesOf(qmp)).find(({ qdev }) => isDevice(qdev, id))
  const inserted = isRecord(found?.['inserted']) ? found['inserted'] : {}
  const { 'node-name': name, ro } = inserted
  if (typeof name !== 'string' || typeof ro !== 'boolean' || !diskNodes(id).includes(name)) throw SpecInvalid(`it has no disk "${id}"`)
  return { name, readonly: ro }
}

async function devicesOf (qmp: QmpClient): Promise<Array<Record<string, unknown>>> {
  const answer = await qmp.execute('query-block', {}, COMMAND_TIMEOUT_MS)
  return Array.isArray(answer) ? answer.filter(isRecord) : []
}

function isDevice (qdev: unknown, id: string): boolean {
  return typeof qdev === 'string' && qdev.split('/').includes(diskDevice(id))
}
