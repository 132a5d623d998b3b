// Memory images made with bare QMP, without any driver: takes one of a machine, and starts machines from it.
import { once } from 'node:events'
import { createReadStream, createWriteStream } from 'node:fs'
import { copyFile, mkdir, rm } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Test } from 'tap'
import type { GuestSystem } from '../../../../plugins/guest/contract.ts'
import { connectWhenThere, makeOverlay, startMachine, type Machine, type MachineOptions } from './machine.ts'

export interface MemoryImage { readonly memory: string, readonly state: string, readonly overlay: string, readonly system: GuestSystem }

const CAPABILITIES = { capabilities: ['x-ignore-shared', 'events'].map((capability) => ({ capability, state: true })) }

/** A machine whose memory can be taken. Its disk is small, since each clone gets a copy. */
export async function startWithMemoryFile (t: Test, folder: string, system?: GuestSystem): Promise<Machine> {
  const overlay = await makeOverlay(folder, 64 * 2 ** 20)
  return await startMachine(t, folder, { memory: { path: join(folder, 'memory'), shared: true }, overlay, system })
}

/** Pauses the machine, keeps its memory and its disk, and ends it. */
export async function capture (machine: Machine): Promise<MemoryImage> {
  const { folder, qmp, system } = machine
  const image = { memory: join(folder, 'memory'), state: join(folder, 'state'), overlay: join(folder, 'overlay.captured'), system }
  const server = createServer()
  server.listen(join(folder, 'capture'))
  await once(server, 'listening')
  const stored = once(server, 'connection').then(([socket]: Socket[]) => socket === undefined ? undefined : pipeline(socket, createWriteStream(image.state)))
  await qmp.run('stop')
  await qmp.run('migrate-set-capabilities', CAPABILITIES)
  const migrated = qmp.migrated()
  await qmp.run('migrate', { uri: `unix:${join(folder, 'capture')}` })
  if (await migrated !== 'completed') throw new Error('the state could not be taken')
  await stored
  server.close()
  await copyFile(join(folder, 'overlay.ext4'), image.overlay)
  await qmp.run('quit')
  await machine.ended
  return image
}

/** A paused machine with that memory: `cont` lets it go on. Its disk is a copy, unless it is given one. */
export async function restore (t: Test, folder: string, image: MemoryImage, options: Pick<MachineOptions, 'overlay'> = {}): Promise<Machine> {
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder)
  const overlay = options.overlay ?? join(folder, 'overlay.ext4')
  if (options.overlay === undefined) await copyFile(image.overlay, overlay)
  const machine = await startMachine(t, folder, { memory: { path: image.memory, shared: false }, incoming: true, overlay, system: image.system })
  await machine.qmp.run('migrate-set-capabilities', CAPABILITIES)
  const migrated = machine.qmp.migrated()
  await machine.qmp.run('migrate-incoming', { uri: `unix:${join(folder, 'restore')}` })
  await pipeline(createReadStream(image.state), await connectWhenThere(join(folder, 'restore')))
  if (await migrated !== 'completed') throw new Error('the state could not be restored')
  return machine
}
