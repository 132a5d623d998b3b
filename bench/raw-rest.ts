// Boots by hand of a VMM that has a REST API: what the server has told it of a machine is read back from the VMM of that machine, and told to another one.
import { existsSync } from 'node:fs'
import { readdir, readlink, symlink } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { outputArgs, OUTPUT_PROGRAM } from '../core/library/vmm/output.ts'
import { createRestClient, mayListenLater, type RestClient } from '../core/library/vmm/rest-client.ts'
import type { RestRequest } from '../core/library/vmm/rest-launch.ts'
import { AGENT_PORT, connectGuest } from '../core/library/vmm/vsock.ts'
import { INITRD_FILE, KERNEL_FILE } from '../plugins/guest/system/store.ts'

const API_SOCKET = 'api.sock'
const VSOCK_SOCKET = 'vsock.sock'
const TIMEOUT_MS = 120_000
/** A VMM drops a call silently while the guest's driver is not up. */
const CALL_TIMEOUT_MS = 1000
const PAUSE_MS = 2
/** as the driver does it: each call that nobody takes is work for the guest that boots */
const CALL_PAUSES_MS = { first: 5, most: 100 }

/** What a VMM with a REST API is told, so that it boots a machine. */
export interface RestModel {
  /** name of its driver, and of its working folder in the machine's */
  readonly driver: string
  /** names in that folder, and the files that they lead to */
  readonly links: ReadonlyArray<readonly [name: string, target: string]>
  readonly requests: readonly RestRequest[]
}

/** of Firecracker */
type Told = Readonly<Record<'boot-source' | 'machine-config' | 'vsock', object>> & { readonly drives: ReadonlyArray<{ readonly drive_id: string }> }

/** The guest tells disks by their order, which Firecracker does not tell. */
const DISKS: readonly string[] = ['root', 'overlay', 'headers']

/** A VMM with a REST API. */
interface RestVmm {
  /** before the paths of its API; absent: nothing */
  readonly prefix?: string
  /** links that its driver removes once it has read them, and the files of the guests' system that they led to */
  readonly dropped?: Readonly<Record<string, string>>
  /** the requests by which another one boots the same machine */
  readonly requests: (client: RestClient) => Promise<RestRequest[]>
}

/** by the names of their drivers */
const VMMS: Readonly<Record<string, RestVmm>> = {
  firecracker: {
    requests: async (client) => {
      const { drives, 'boot-source': boot, 'machine-config': machine, vsock } = toldBack(await client.ask('GET', '/vm/config')) as Told
      const ordered = drives.toSorted((a, b) => DISKS.indexOf(a.drive_id) - DISKS.indexOf(b.drive_id))
      return [
        put('/machine-config', machine), put('/boot-source', boot), ...ordered.map((drive) => put(`/drives/${drive.drive_id}`, drive)), put('/vsock', vsock), put('/entropy', {}),
        put('/actions', { action_type: 'InstanceStart' })
      ]
    }
  },
  'cloud-hypervisor': {
    prefix: '/api/v1',
    dropped: { kernel: KERNEL_FILE, initrd: INITRD_FILE },
    requests: async (client) => {
      const { config } = toldBack(await client.ask('GET', '/vm.info')) as { readonly config: object }
      return [put('/vm.create', config), { method: 'PUT', path: '/vm.boot' }]
    }
  }
}

/** Of the VM that runs in a machine's folder; undefined when its VMM has no such API. @param dataDir the server's */
export async function readRestModel (directory: string, dataDir: string): Promise<RestModel | undefined> {
  for (const [driver, { dropped, requests }] of Object.entries(VMMS)) {
    const folder = join(directory, driver)
    if (!existsSync(folder)) continue
    const entries = (await readdir(folder, { withFileTypes: true })).filter((entry) => entry.isSymbolicLink())
    const there = await Promise.all(entries.map(async ({ name }) => [name, await readlink(join(folder, name))] as const))
    const again = dropped === undefined ? [] : await linksToSystem(dropped, dataDir)
    return { driver, links: [...there, ...again], requests: await requests(clientIn(folder, driver)) }
  }
  return undefined
}

/** Into the one system that the guests of a new server have. */
async function linksToSystem (files: Readonly<Record<string, string>>, dataDir: string): Promise<Array<readonly [name: string, target: string]>> {
  const systems = join(dataDir, 'system')
  const [version = 'none'] = await readdir(systems)
  return Object.entries(files).map(([name, file]) => [name, join(systems, version, file)] as const)
}

/** The command line of a VMM whose guest's output goes to files. */
export function restLine (argv: readonly string[]): string[] {
  return [OUTPUT_PROGRAM, ...outputArgs(VSOCK_SOCKET), ...argv]
}

/** Makes the links of another machine. */
export async function placeLinks ({ links }: RestModel, folder: string, there: (target: string) => string): Promise<void> {
  for (const [name, target] of links) await symlink(there(target), join(folder, name))
}

/** Has the VMM that was just started in a folder boot its machine, and resolves to the connection to its guest. */
export async function bootOver ({ driver, requests }: RestModel, folder: string): Promise<Socket> {
  const client = clientIn(folder, driver)
  for (const { method, path, body } of requests) await untilItListens(async () => await client.ask(method, path, body))
  const deadline = performance.now() + TIMEOUT_MS
  for (let pauseMs = CALL_PAUSES_MS.first; ; pauseMs = Math.min(pauseMs * 2, CALL_PAUSES_MS.most)) {
    try {
      return await connectGuest(folder, VSOCK_SOCKET, AGENT_PORT, CALL_TIMEOUT_MS)
    } catch (error) {
      if (performance.now() > deadline) throw error
      await delay(pauseMs)
    }
  }
}

/** Polled, since no event tells of it: the socket's name appears before anyone listens. */
async function untilItListens (ask: () => Promise<unknown>): Promise<void> {
  for (const deadline = performance.now() + TIMEOUT_MS; ;) {
    try {
      await ask()
      return
    } catch (error) {
      if (!mayListenLater(error) || performance.now() > deadline) throw error
      await delay(PAUSE_MS)
    }
  }
}

function clientIn (folder: string, driver: string): RestClient {
  return createRestClient({ name: 'the VMM', folder, socket: API_SOCKET, prefix: VMMS[driver]?.prefix ?? '', timeoutMs: TIMEOUT_MS })
}

/** What a VMM writes as null was not set. */
function toldBack (config: unknown): unknown {
  return JSON.parse(JSON.stringify(config), (_name, value: unknown) => value === null ? undefined : value)
}

function put (path: string, body: object): RestRequest { return { method: 'PUT', path, body } }
