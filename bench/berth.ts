// A Berth server with an image that is ready, and what a client does with its machines.
import { basename } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { OciImageSource } from '@onkernel/hypeman/lib/push'
import { createApi, type Api } from '../setup/server/api.ts'
import { startServer, type ServerOptions, type ServerProcess } from '../setup/server/process.ts'
import { runCommand } from '../test/helpers/exec.ts'
import { pushGuestImage } from './guest/image.ts'

export interface Berth {
  readonly server: ServerProcess
  readonly api: Api
  /** name of the image in the server's own registry */
  readonly image: string
}

export interface MachineOptions {
  readonly name: string
  readonly argv: readonly string[]
  /** `256MB` */
  readonly size: string
  /** default: 1 */
  readonly vcpus?: number
  /** as in a request */
  readonly network?: Readonly<Record<string, unknown>>
  /** absent: the kernel's modules and headers are there */
  readonly skipKernelHeaders?: boolean
}

/** the first line that every machine here prints */
export const firstLine = 'ready'
export const overlayMegabytes = 1024

/** Starts a server in a folder of its own and gives it the image. */
export async function startBerth (options: ServerOptions, image: OciImageSource): Promise<Berth> {
  const server = await startServer(options)
  const api = createApi(server.url, server.key)
  const name = await pushGuestImage(server, image)
  await imageReady(api, name)
  console.error(`a server and its image are ready: ${basename(options.folder)}`)
  return { server, api, image: name }
}

/** Creates an instance; its guest may still be booting. */
export async function create ({ api, image }: Berth, { name, argv, size, vcpus = 1, network, skipKernelHeaders = false }: MachineOptions): Promise<string> {
  const request = { name, image, size, vcpus, overlay_size: `${overlayMegabytes}MB`, entrypoint: [], cmd: argv, skip_kernel_headers: skipKernelHeaders }
  return idOf(await api.call('POST', '/instances', network === undefined ? request : { ...request, network }))
}

/** Waits until the instance is Running and has printed its first line. */
export async function ready ({ api }: Berth, id: string): Promise<void> {
  const stop = new AbortController()
  const printed = (async () => {
    for await (const line of api.lines(`/instances/${id}/logs?follow=true&tail=10000`, stop.signal)) if (line === firstLine) return
    throw new Error('the output ended without its first line')
  })()
  await Promise.all([printed, running({ api }, id)])
}

/** Waits until the instance is Running. */
export async function running ({ api }: Pick<Berth, 'api'>, id: string): Promise<void> {
  const answer = await api.call('GET', `/instances/${id}/wait?state=Running&timeout=120s`)
  if (field(answer, 'state') !== 'Running') throw new Error(`instance ${id} is ${String(field(answer, 'state'))} instead of Running`)
}

/** Creates an instance and waits for its first line. */
export async function boot (berth: Berth, options: MachineOptions): Promise<string> {
  const id = await create(berth, options)
  await ready(berth, id)
  return id
}

/** Runs a command in the instance over the API; fails unless the command succeeds. */
export async function exec ({ server }: Berth, id: string, command: readonly string[]): Promise<string> {
  const { stdout, stderr, exitCode, error } = await runCommand(server, id, { command })
  if (exitCode !== 0) throw new Error(`exec of ${command.join(' ')}: ${error ?? `exit code ${String(exitCode)}, ${stderr}`}`)
  return stdout
}

export async function remove ({ api }: Berth, id: string): Promise<void> {
  await api.call('DELETE', `/instances/${id}?graceful_shutdown=false`)
}

/** Lines of one of an instance's logs. */
export async function logLines ({ api }: Berth, id: string, source: 'app' | 'berth'): Promise<string[]> {
  const lines: string[] = []
  for await (const line of api.lines(`/instances/${id}/logs?source=${source}&tail=10000`)) lines.push(line)
  return lines
}

/** The id in an answer of the API. */
export function idOf (answer: unknown): string {
  const id = field(answer, 'id')
  if (typeof id !== 'string') throw new Error('the server did not answer with an object that has an id')
  return id
}

/** A field of an answer of the API. */
export function field (answer: unknown, name: string): unknown {
  return typeof answer === 'object' && answer !== null ? Object.entries(answer).find(([key]) => key === name)?.[1] : undefined
}

/** The API has no event for this, so it is polled. */
async function imageReady (api: Api, name: string): Promise<void> {
  for (;;) {
    const image = await api.call('GET', `/images/${encodeURIComponent(name)}`)
    const status = field(image, 'status')
    if (status === 'ready') return
    if (status === 'failed') throw new Error(`the image ${name} failed: ${String(field(image, 'error'))}`)
    await delay(100)
  }
}
