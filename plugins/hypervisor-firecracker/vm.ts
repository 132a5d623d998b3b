// One VM of Firecracker, controlled through its REST API while it runs.
import { existsSync } from 'node:fs'
import { lstat, readlink, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { VmHandle, VmState } from '../../core/library/hypervisor.ts'
import { SpecInvalid } from '../../core/library/vmm/errors.ts'
import { identityOf } from '../../core/library/vmm/handle.ts'
import { createRestClient, type RestClient } from '../../core/library/vmm/rest-client.ts'
import type { VmOptions } from '../../core/library/vmm/rest-driver.ts'
import { createRestImaging } from '../../core/library/vmm/rest-capture.ts'
import { RestVm } from '../../core/library/vmm/rest-vm.ts'
import { runFolder, type RunFolder } from '../../core/library/vmm/run-folder.ts'
import { AGENT_PORT, connectGuest } from '../../core/library/vmm/vsock.ts'
import { isRecord } from '../../core/json/is-record.ts'
import { hasCode } from '../../core/errors/system-code.ts'
import { captureOf } from './capture.ts'
import { ROOT, showInJail } from './jail.ts'
import { API_SOCKET, diskLink, DRIVER, driveId, VSOCK_SOCKET } from './names.ts'
import { limitRequests } from './spec.ts'

/** The folder of a VM that is there, or, with `isJailed`, of one that is to be started. */
export function folderOf (directory: string, { isJailed = existsSync(join(directory, DRIVER, ROOT)) } = {}): RunFolder {
  return runFolder(directory, DRIVER, API_SOCKET, { jail: { root: ROOT, isUsed: isJailed } })
}

export function clientOf (folder: RunFolder, timeoutMs: number): RestClient {
  return createRestClient({ name: 'Firecracker', folder: folder.room, socket: API_SOCKET, timeoutMs })
}

/** The VM's state as Firecracker reports it. */
async function askState (client: RestClient): Promise<VmState | undefined> {
  const answer = await client.ask('GET', '/')
  switch (isRecord(answer) ? answer['state'] : undefined) {
    case 'Running': return { status: 'running' }
    case 'Paused':
    case 'Not started': return { status: 'paused' }
    default: return undefined
  }
}

export function createVm (handle: VmHandle, state: VmState, options: VmOptions): RestVm {
  const folder = folderOf(handle.directory)
  const heartbeat = clientOf(folder, options.heartbeat.deadlineMs)
  /** for callers, who wait longer for an answer */
  const client = clientOf(folder, options.imageTimeoutMs)
  let long = 0
  /** For requests during which Firecracker serves no other. */
  const slow = async (method: 'PUT' | 'PATCH', path: string, body: object): Promise<void> => {
    long++
    try {
      await client.ask(method, path, body)
    } finally {
      long--
    }
  }
  const show = async (name: string): Promise<void> => { if (folder.room !== folder.path) await showInJail(options.commands, folder, handle.pid, name) }
  return new RestVm({
    handle,
    identity: identityOf(DRIVER, handle),
    folder,
    reach: (timeoutMs) => connectGuest(folder.room, VSOCK_SOCKET, AGENT_PORT, timeoutMs),
    api: API_SOCKET,
    ask: () => askState(heartbeat),
    isBusy: () => long > 0,
    imaging: (vm) => createRestImaging({ vm, handle, commands: options.commands, ask: () => askState(client) }, captureOf(folder, slow)),
    replaceDisk: (id, path) => replaceDisk({ folder, show, patch: slow }, id, path),
    async limitDisks (bytesPerSecond) {
      for (const { path, body = {} } of limitRequests(await disksIn(folder), bytesPerSecond)) await slow('PATCH', path, body)
    }
  }, state, options)
}

interface Replacing {
  readonly folder: RunFolder
  /** Shows a jailed VM what a link names now. */
  readonly show: (name: string) => Promise<void>
  readonly patch: (method: 'PATCH', path: string, body: object) => Promise<void>
}

/** The link leads to the new image, and Firecracker opens it in place of the old one. */
async function replaceDisk ({ folder, show, patch }: Replacing, id: string, path: string): Promise<void> {
  const link = diskLink(id)
  const before = await readlink(join(folder.path, link)).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) throw SpecInvalid(`it has no disk "${id}"`)
    throw error
  })
  await lstat(path)
  await folder.link(link, path)
  try {
    await show(link)
    await patch('PATCH', `/drives/${driveId(id)}`, { drive_id: driveId(id), path_on_host: link })
  } catch (error) {
    await folder.link(link, before)
    await show(link)
    throw error
  }
}

async function disksIn (folder: RunFolder): Promise<string[]> {
  const prefix = diskLink('')
  return (await readdir(folder.path)).filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length))
}
