// Crashes of the server at a named step, without ending the test: another server starts on what is there at that moment.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { createHostCommands } from '../../../core/process/run.ts'
import { startApp, temporaryData, type TestApp } from './app.ts'
import type { ImagingStep } from './scripted.ts'

/** Runs `call` up to `step`, and starts another server on what is there at that moment. */
export async function crashAt (t: Test, before: TestApp, step: ImagingStep, call: () => Promise<unknown>): Promise<TestApp> {
  const { host } = before
  let go = (): void => {}
  const held = new Promise<void>((resolve) => { go = resolve })
  const reached = new Promise<void>((resolve) => {
    host.onStep = async (now) => {
      if (now !== step) return
      host.onStep = undefined
      resolve()
      await held
      throw new Error('the server was killed here')
    }
  })
  const cut = call()
  await reached
  const dataDir = join(await temporaryData(t), 'data')
  await mkdir(dataDir, { mode: 0o755 })
  await createHostCommands().run('cp', ['--archive', '--sparse=always', `${before.dataDir}/.`, dataDir])
  const after = await startApp(t, { host, dataDir })
  t.teardown(async () => {
    go()
    await cut
  })
  return after
}

/** Polled: for what is nobody's answer, so that nothing tells of its end. */
export async function until (holds: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; !await holds(); tries++) {
    if (tries > 500) throw new Error('it did not come to hold within 5 s')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
