// The state of a VM's devices and processors without any of its memory, in the form in which QEMU takes a whole state.
//
// QEMU leaves only memory that is shared with a named file out of what it migrates, and `xen-save-devices-state`, which has nothing to do with Xen in it, leaves all memory out. What it writes lacks the section
// by which an incoming state is known to fit the machine; that section is added here.
import { constants } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { VmHandle } from '../../core/library/hypervisor.ts'
import { CaptureFailed } from '../../core/library/vmm/errors.ts'
import { readState } from '../../core/library/vmm/state-file.ts'
import type { QmpClient } from './client.ts'
import { folderOf } from './run-folder.ts'

const HEADER = Buffer.from('5145564d00000003', 'hex')
const SECTION = { configuration: 7, subsection: 5, description: 6 } as const
const CAPABILITIES = 'configuration/capabilities'
/** that of migration.ts whose value must be the same on both sides */
const CAPABILITY = 'x-ignore-shared'
/** in QEMU's working folder */
const NAME = 'devices'

/** Has QEMU save the devices of a paused VM, and writes them to `statePath`, which must not exist. Resolves with its bytes; nothing is left of it when this rejects. */
export async function saveDevices (qmp: QmpClient, handle: VmHandle, statePath: string, timeoutMs: number): Promise<number> {
  const path = join(folderOf(handle.directory).path, NAME)
  // What a crash of the server has left.
  await rm(path, { force: true })
  try {
    // The guest may go on afterwards: its disks stay open.
    await qmp.execute('xen-save-devices-state', { filename: NAME, live: false }, timeoutMs)
    const state = wholeState(await machineOf(qmp, timeoutMs), await readDevices(path))
    await writeState(statePath, state)
    return state.length
  } finally {
    await rm(path, { force: true })
  }
}

/** @param devices as QEMU writes them */
export function wholeState (machine: string, devices: Buffer): Buffer {
  if (!devices.subarray(0, HEADER.length).equals(HEADER)) throw CaptureFailed('QEMU writes the state of devices in a form that is not known')
  const description = Buffer.from('{}')
  return Buffer.concat([
    HEADER,
    Buffer.of(SECTION.configuration), word(machine.length), Buffer.from(machine, 'latin1'),
    Buffer.of(SECTION.subsection), text(CAPABILITIES), word(1), word(1), text(CAPABILITY),
    devices.subarray(HEADER.length),
    // QEMU complains when nothing describes the devices, and reads no further than to the end of it.
    Buffer.of(SECTION.description), word(description.length), description
  ])
}

/** The machine's name in a state, of which the one on the command line may be an alias. */
async function machineOf (qmp: QmpClient, timeoutMs: number): Promise<string> {
  const type = await qmp.execute('qom-get', { path: '/machine', property: 'type' }, timeoutMs)
  const name = typeof type === 'string' ? /^(?<name>[\w.-]{1,64})-machine$/.exec(type)?.groups?.['name'] : undefined
  if (name === undefined) throw CaptureFailed('QEMU does not say which machine it is')
  return name
}

/** The folder is the VMM's, and a guest may control that: what is read there is a file of limited size, which this VMM itself has written. */
async function readDevices (path: string): Promise<Buffer> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const found = await file.stat()
    if (!found.isFile() || found.nlink !== 1) throw CaptureFailed('QEMU has not written the state of its devices')
    return await readState(file)
  } finally {
    await file.close()
  }
}

async function writeState (path: string, state: Buffer): Promise<void> {
  const file = await open(path, 'wx', 0o600)
  try {
    await file.writeFile(state)
  } catch (error) {
    await rm(path, { force: true })
    throw error
  } finally {
    await file.close()
  }
}

function word (value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

function text (value: string): Buffer {
  return Buffer.concat([Buffer.of(value.length), Buffer.from(value, 'latin1')])
}
