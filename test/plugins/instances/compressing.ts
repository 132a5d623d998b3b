// Helpers for tests of compressed memory images.
import { randomBytes } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { startApp, type StartOptions, type TestApp } from './app.ts'
import { until } from './crash.ts'

export interface Running extends TestApp {
  readonly id: string
  readonly folder: string
  /** what is in the image's folder */
  image (): Promise<string[]>
  manifest (): Promise<Record<string, unknown>>
  /** whether the memory is there as it is */
  hasMemory (): Promise<boolean>
  log (): Promise<string>
  /** returns when the image has been compressed */
  compressed (): Promise<void>
}

/** Looks at an instance. */
export function facing (app: TestApp, id: string): Running {
  const folder = join(app.dataDir, 'instances', id)
  const log = async (): Promise<string> => await readFile(join(folder, 'operations.log'), 'utf8')
  const manifest = async (): Promise<Record<string, unknown>> => JSON.parse(await readFile(join(folder, 'standby', 'image.json'), 'utf8'))
  const hasMemory = async (): Promise<boolean> => (await readdir(folder)).includes('memory')
  return {
    ...app,
    id,
    folder,
    log,
    manifest,
    hasMemory,
    image: async () => (await readdir(join(folder, 'standby'))).sort(),
    compressed: async () => { await until(async () => (await manifest())['compressed'] !== undefined && !await hasMemory()) }
  }
}

/** An instance that runs. */
export async function running (t: Test, options: StartOptions = {}, fields: Record<string, unknown> = {}): Promise<Running> {
  const app = await startApp(t, options)
  const id = await app.make('web', fields)
  await app.waitFor('web', 'Running')
  return facing(app, id)
}

/** Gives the VM a memory whose compression by zstd 19 takes far longer than any test. */
export async function fillMemory ({ folder, host }: Running, mib = 24): Promise<void> {
  const unit = randomBytes(2 ** 20)
  // One page in four differs from MiB to MiB, so that there is something to search for.
  const parts = Array.from({ length: mib }, () => Buffer.concat([unit.subarray(0, 3 * 2 ** 18), randomBytes(2 ** 18)]))
  host.onStep = async (step) => {
    if (step === 'captured') await writeFile(join(folder, 'memory'), Buffer.concat(parts))
  }
}

/** Waits until a tool writes the compressed memory of the instance. */
export async function compressing ({ folder }: Running): Promise<void> {
  await until(async () => (await tools(folder)).length > 0)
}

/** Compressors at work on something in this folder. */
export async function tools (folder: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const lines = await Promise.all(pids.map(async (pid) => await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')))
  return lines.filter((line) => line.startsWith('tar\0') && line.includes(folder))
}
