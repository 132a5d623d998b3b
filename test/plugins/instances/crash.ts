// Crashes of the server at a named step, without ending the test: another server starts on what is there at that moment.
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Test } from 'tap'
import { createHostCommands } from '../../../core/process/run.ts'
import { startApp, temporaryData, type StartOptions, type TestApp } from './app.ts'
import type { ImagingStep } from './scripted.ts'
import { until } from '../../helpers/eventually.ts'

export { until }

/** A step of something that happens more than once: which time, from 1. */
export interface Occurrence { readonly step: ImagingStep, readonly nth: number }

/** Runs `call` up to a step, and starts another server on what is there at that moment. */
export async function crashAt (t: Test, before: TestApp, step: ImagingStep | Occurrence, call: () => Promise<unknown>): Promise<TestApp>
export async function crashAt<A extends TestApp> (t: Test, before: A, step: ImagingStep | Occurrence, call: () => Promise<unknown>, start: (t: Test, options: StartOptions) => Promise<A>): Promise<A>
export async function crashAt (t: Test, before: TestApp, at: ImagingStep | Occurrence, call: () => Promise<unknown>, start: (t: Test, options: StartOptions) => Promise<TestApp> = startApp): Promise<TestApp> {
  const { host } = before
  const { step, nth } = typeof at === 'string' ? { step: at, nth: 1 } : at
  let left = nth
  let go = (): void => {}
  const held = new Promise<void>((resolve) => { go = resolve })
  const reached = new Promise<void>((resolve) => {
    host.onStep = async (now) => {
      if (now !== step || --left > 0) return
      host.onStep = undefined
      resolve()
      await held
      throw new Error('the server was killed here')
    }
  })
  const cut = call()
  await reached
  const after = await start(t, { host, dataDir: await copyOfData(t, before.dataDir) })
  t.teardown(async () => {
    go()
    await cut
  })
  return after
}

/** Everything that is there at this moment, in another folder. */
export async function copyOfData (t: Test, from: string): Promise<string> {
  // What goes on beside the held step takes files away and renames them, more than once when it compresses memory: a copy of the moment after is as good.
  for (let left = 9; left > 0; left--) {
    const copy = await copyOnce(t, from).catch(() => undefined)
    if (copy !== undefined) return copy
  }
  return await copyOnce(t, from)
}

async function copyOnce (t: Test, from: string): Promise<string> {
  const dataDir = join(await temporaryData(t), 'data')
  await mkdir(dataDir, { mode: 0o755 })
  await createHostCommands().run('cp', ['--archive', '--sparse=always', `${from}/.`, dataDir])
  // A folder that was renamed meanwhile may be there under both names, as at no moment.
  const [there, copied] = await Promise.all([namesIn(from), namesIn(dataDir)])
  if (!isDeepStrictEqual(there, copied)) throw new Error(`${from} changed while it was copied`)
  return dataDir
}

async function namesIn (folder: string): Promise<string[]> {
  return (await readdir(folder, { recursive: true })).sort()
}

/** What stands in an instance's folder once its VM counts as restored. */
export async function settledFiles (folder: string): Promise<string[]> {
  await until(async () => !(await readdir(folder)).includes('restore.kept'))
  return (await readdir(folder)).sort()
}
