// Tracks which parts of a disk the guest writes: in a bitmap of QEMU, which is read through its NBD server, since QMP reports only how much is dirty.
import type { VmDiskChanges } from '../../core/library/hypervisor.ts'
import { OneAtATime } from '../../core/jobs/one-at-a-time.ts'
import { createUndo } from '../../core/undo.ts'
import { connectUnix } from '../../core/process/unix-socket.ts'
import { currentNode } from './disks.ts'
import { QmpRefused } from './errors.ts'
import { openBitmap } from './nbd.ts'
import type { QmpClient } from './client.ts'

const COMMAND_TIMEOUT_MS = 5000
const BITMAP = 'berth-copy'
/** QEMU's smallest cluster for its own copies; less would only make the lists longer */
const GRANULARITY_BYTES = 65_536
/** name of the socket in the run folder */
const NBD_SOCKET = 'disks.sock'

/** The disks of one VM. QEMU has one NBD server, which runs while any disk is tracked. */
export class DiskChanges {
  readonly #folder: string
  readonly #timeoutMs: number
  readonly #tracked = new Set<string>()
  readonly #turns = new OneAtATime()

  /**
   * @param folder the VMM's working folder
   * @param timeoutMs most time for all ranges of a disk
   */
  constructor (folder: string, timeoutMs: number) {
    this.#folder = folder
    this.#timeoutMs = timeoutMs
  }

  async track (qmp: QmpClient, id: string): Promise<VmDiskChanges> {
    return await this.#turns.run(async () => await this.#begin(qmp, id))
  }

  async #begin (qmp: QmpClient, id: string): Promise<VmDiskChanges> {
    const node = (await currentNode(qmp, id)).name
    const exported = `changes-${id}`
    const undo = createUndo()
    const run = async (command: string, args: Readonly<Record<string, unknown>> = {}): Promise<void> => { await qmp.execute(command, args, COMMAND_TIMEOUT_MS) }
    const ifThere = async (work: Promise<void>): Promise<void> => { await work.catch((error: unknown) => { if (!QmpRefused.is(error)) throw error }) }
    // What a crash of the server has left: its exports end with the server, and then the bitmap is free.
    if (this.#tracked.size === 0) {
      await ifThere(run('nbd-server-stop'))
      await run('nbd-server-start', { addr: { type: 'unix', data: { path: NBD_SOCKET } } })
    }
    this.#tracked.add(id)
    undo.add(async () => {
      this.#tracked.delete(id)
      if (this.#tracked.size === 0) await run('nbd-server-stop')
    })
    try {
      await ifThere(run('block-dirty-bitmap-remove', { node, name: BITMAP }))
      await run('block-dirty-bitmap-add', { node, name: BITMAP, granularity: GRANULARITY_BYTES })
      undo.add(async () => { await run('block-dirty-bitmap-remove', { node, name: BITMAP }) })
      return {
        ranges: async () => {
          // QEMU does not export a bitmap that is still recording. The guest is paused.
          await run('block-dirty-bitmap-disable', { node, name: BITMAP })
          await run('block-export-add', { type: 'nbd', id: exported, 'node-name': node, name: exported, bitmaps: [BITMAP] })
          undo.add(async () => { await endExport(qmp, exported) })
          const bitmap = await openBitmap(await connectUnix(this.#folder, NBD_SOCKET), { exportName: exported, bitmap: BITMAP, granularityBytes: GRANULARITY_BYTES, timeoutMs: this.#timeoutMs })
          undo.add(() => { bitmap.close() })
          return await bitmap.ranges()
        },
        end: async () => await this.#turns.run(async () => {
          const [failure] = await undo.run()
          if (failure !== undefined) throw failure
        })
      }
    } catch (error) {
      await undo.run()
      throw error
    }
  }
}

/** Resolves once its bitmap can be removed. */
async function endExport (qmp: QmpClient, id: string): Promise<void> {
  let stop = (): void => {}
  const gone = new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, COMMAND_TIMEOUT_MS)
    const unsubscribe = qmp.onEvent((name, data) => { if (name === 'BLOCK_EXPORT_DELETED' && data['id'] === id) resolve() })
    qmp.closed.then(() => { resolve() }, resolve)
    stop = () => {
      clearTimeout(timer)
      unsubscribe()
    }
  })
  try {
    await qmp.execute('block-export-del', { id, mode: 'hard' }, COMMAND_TIMEOUT_MS)
    await gone
  } finally {
    stop()
  }
}
