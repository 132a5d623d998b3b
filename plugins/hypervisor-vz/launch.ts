// Brings a VM up.
import { stat } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { VmSpec } from '../../core/library/hypervisor.ts'
import { LaunchFailed } from '../../core/library/vmm/errors.ts'
import type { RestClient } from '../../core/library/vmm/rest-client.ts'
import { bringUp } from '../../core/library/vmm/rest-launch.ts'
import type { RestVm, RestVmOptions } from '../../core/library/vmm/rest-vm.ts'
import { diskLink, DRIVER, INITRD, KERNEL, VFKIT, VSOCK } from './names.ts'
import { placeOf } from './place.ts'
import { checkSpec, vfkitArguments } from './spec.ts'
import { askState, clientOf, createVm } from './vm.ts'

const START_PAUSE_MS = 5

export interface VzLaunchOptions extends RestVmOptions {
  readonly binary: string
  readonly vmmVersion: string
  /** time for vfkit to answer, and for its VM to run, `ms` */
  readonly timeoutMs: number
  /** the driver's own folder, with the links to run folders */
  readonly links: string
}

export async function launchVm (spec: VmSpec, options: VzLaunchOptions, signal?: AbortSignal): Promise<RestVm> {
  checkSpec(spec)
  signal?.throwIfAborted()
  const { kernel: { path, initrd }, vcpus, memoryBytes } = spec
  // vfkit's error would name only the links.
  for (const file of [path, initrd]) await stat(file).catch((error: unknown) => { throw LaunchFailed.from(error, error instanceof Error ? error.message : String(error)) })
  const place = placeOf(spec.directory, options.links)
  const client = clientOf(place, options.timeoutMs)
  return await bringUp(spec, {
    name: VFKIT,
    driver: DRIVER,
    vmmVersion: options.vmmVersion,
    command: [options.binary, ...vfkitArguments(spec, place.at)],
    folder: place,
    client,
    vsock: VSOCK,
    links: { [KERNEL]: path, [INITRD]: initrd, ...Object.fromEntries(spec.disks.map((disk) => [diskLink(disk.id), disk.path])) },
    ping: '/vm/state',
    timeoutMs: options.timeoutMs,
    // This VM is never saved as an image.
    facts: { key: '', shape: {}, vcpus, memoryBytes },
    fill: () => runs(client, options.timeoutMs, signal),
    makeVm: (handle) => createVm(handle, { status: 'running' }, place, options),
    onError: options.onError
  }, signal)
}

/** vfkit answers before it has started its VM. */
async function runs (client: RestClient, timeoutMs: number, signal: AbortSignal | undefined): Promise<void> {
  const deadline = performance.now() + timeoutMs
  while ((await askState(client))?.status !== 'running') {
    signal?.throwIfAborted()
    if (performance.now() > deadline) throw LaunchFailed(`vfkit has not started its VM within ${timeoutMs} ms`)
    // Polled: the API has no events.
    await sleep(START_PAUSE_MS)
  }
}
