// Boots one machine over the API, shows its output, and reports how it ended.
import { readFile } from 'node:fs/promises'
import { uptime } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import type { Api } from '../server/api.ts'
import { checkFacts, factsScript } from './facts.ts'

export interface MachineRequest {
  readonly image: string
  /** absent: the image's own entrypoint and command */
  readonly command?: readonly string[]
}

export interface MachineReport {
  readonly lines: readonly string[]
  readonly exitCode: number | undefined
  readonly exitMessage: string
  /** whether it was still running when the time for its output was over */
  readonly isServing: boolean
}

const memoryMegabytes = 256
const patienceMs = 60_000
const demoExitCode = 7

interface Instance { readonly id: string, readonly state: string, readonly exitCode: number | undefined, readonly exitMessage: string }

/** Boots the demo image and throws when a reported fact is wrong. */
export async function runDemo (api: Api, image: string, show: (line: string) => void): Promise<void> {
  const report = await runMachine(api, { image, command: ['/bin/sh', '-c', `${factsScript}; exit ${demoExitCode}`] }, show)
  const bootId = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()
  const problems = checkFacts(report.lines, { bootId, uptimeSeconds: uptime(), givenBytes: memoryMegabytes * 2 ** 20 })
  if (report.exitCode !== demoExitCode) problems.push(`its exit code is ${String(report.exitCode)} instead of ${demoExitCode} (${report.exitMessage})`)
  if (problems.length > 0) throw new Error(`the machine ran, but ${problems.join('; ')}`)
}

/** Creates the machine, follows its output until it ends, and deletes it. A machine that keeps running is left after a while. */
export async function runMachine (api: Api, request: MachineRequest, show: (line: string) => void): Promise<MachineReport> {
  await imageReady(api, request.image)
  const created = asInstance(await api.call('POST', '/instances', {
    name: `quickstart-${Date.now().toString(36)}`,
    image: request.image,
    size: `${memoryMegabytes}MB`,
    vcpus: 1,
    overlay_size: '1GB',
    ...(request.command === undefined ? {} : { entrypoint: [], cmd: request.command })
  }))
  const lines: string[] = []
  const stopFollowing = new AbortController()
  const following = follow(api, created.id, stopFollowing.signal, (line) => {
    lines.push(line)
    show(line)
  })
  const ended = await stoppedWithin(api, created.id, patienceMs)
  // The stream ends with the machine; for a machine that keeps running it is closed here.
  if (ended === undefined) stopFollowing.abort()
  await following
  const last = ended ?? asInstance(await api.call('GET', `/instances/${created.id}`))
  await api.call('DELETE', `/instances/${created.id}`)
  return { lines, exitCode: last.exitCode, exitMessage: last.exitMessage, isServing: ended === undefined }
}

async function follow (api: Api, id: string, signal: AbortSignal, show: (line: string) => void): Promise<void> {
  try {
    for await (const line of api.lines(`/instances/${id}/logs?follow=true&tail=1000`, signal)) show(line)
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

/** The instance if it has stopped by now; undefined otherwise. */
async function stoppedWithin (api: Api, id: string, timeoutMs: number): Promise<Instance | undefined> {
  const answer = await api.call('GET', `/instances/${id}/wait?state=Stopped&timeout=${timeoutMs / 1000}s`)
  const timedOut = typeof answer === 'object' && answer !== null && 'timed_out' in answer && answer.timed_out === true
  return timedOut ? undefined : asInstance(await api.call('GET', `/instances/${id}`))
}

/** Asks for the image and waits until it can boot. The API reports progress in its answers only, so this polls. */
async function imageReady (api: Api, reference: string): Promise<void> {
  await api.call('POST', '/images', { name: reference })
  const deadline = Date.now() + 600_000
  while (Date.now() < deadline) {
    const image = await api.call('GET', `/images/${encodeURIComponent(reference)}`)
    const status = field(image, 'status')
    if (status === 'ready') return
    if (status === 'failed') throw new Error(`the image could not be made ready: ${String(field(image, 'error'))}`)
    await delay(100)
  }
  throw new Error(`the image ${reference} was not ready within ten minutes`)
}

function asInstance (value: unknown): Instance {
  const exitCode = field(value, 'exit_code')
  return {
    id: String(field(value, 'id')),
    state: String(field(value, 'state')),
    exitCode: typeof exitCode === 'number' ? exitCode : undefined,
    exitMessage: String(field(value, 'exit_message') ?? 'no exit message')
  }
}

function field (value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Object.entries(value).find(([key]) => key === name)?.[1] : undefined
}
