// Kills a real server right before each step of something that it does by itself, and looks at what the next one makes of it. See die-at-step.ts.
import { existsSync } from 'node:fs'
import { readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { hasCode } from '../../core/errors/system-code.ts'
import { eventually } from './eventually.ts'
import { shareOfCommit } from '../../setup/test/share-of-commit.ts'
import type { TestServer } from './server.ts'

/** holds the number of the step before which the server dies; without it nothing is counted */
export const orderFile = (folder: string): string => join(folder, 'die-before')
/** the steps since the order was given, a line each */
export const stepsFile = (folder: string): string => join(folder, 'steps')

/** For `nodeArguments` of a server that is to die at its steps. */
export const DYING: readonly string[] = ['--import', fileURLToPath(new URL('die-at-step.js', import.meta.url))]

/** What a server does by itself with an instance. */
export interface Life {
  /** Makes an instance that nothing happens to yet. */
  prepare (): Promise<string>
  /** What makes the server act. Its answer may be lost with the server. */
  provoke (id: string): Promise<unknown>
  /** how many of the steps are those of `provoke` itself, which are other tests' */
  readonly given: number
  /** whether the server has done all of it */
  isDone (id: string): Promise<boolean>
  /** Asserts how it ended. */
  check (t: Test, id: string, step: string): Promise<void>
}

/** Each step is two or three boots of a real machine. What the steps leave behind is looked at one by one with a scripted guest, too. */
const PARTS = 4
/** Longer than any step takes to follow another, also under load. */
const QUIET_MS = 1500

/**
 * Runs it once without a death, and then once for each step of that run that this commit plays: a quarter, and the last one. Each time the next server has to finish it.
 */
export async function killedAtEachStep (t: Test, server: TestServer, life: Life): Promise<void> {
  const whole = await run(server, life, Infinity)
  await life.check(t, whole.id, 'without a death')
  t.ok(whole.steps.length > life.given, whole.steps.join(', '))
  const numbers = Array.from({ length: whole.steps.length - life.given }, (_unused, index) => life.given + 1 + index)
  for (const number of new Set([...shareOfCommit(numbers, PARTS), whole.steps.length])) {
    const { id, steps, died } = await run(server, life, number)
    // What goes on side by side may take fewer steps another time.
    if (!died) t.ok(steps.length < number, `step ${number} did not come: ${steps.join(', ')}`)
    await life.check(t, id, `killed before step ${number}: ${steps.at(-1) ?? ''}`)
  }
}

/** Whether it was still there: a server that removes it first dies. */
async function takeBack (order: string): Promise<boolean> {
  try {
    await rm(order)
    return true
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false
    throw error
  }
}

/** Until the server has died, or has taken no step for a while. */
async function noMoreSteps (folder: string, isDead: () => boolean): Promise<void> {
  let bytes = -1
  let since = 0
  await eventually('no more steps', async () => {
    const now = existsSync(stepsFile(folder)) ? (await stat(stepsFile(folder))).size : 0
    if (now !== bytes) since = performance.now()
    bytes = now
    return isDead() || performance.now() - since > QUIET_MS
  }, { pollMs: 100 })
}

async function run (server: TestServer, life: Life, number: number): Promise<{ id: string, steps: string[], died: boolean }> {
  const { folder } = server
  const id = await life.prepare()
  await rm(stepsFile(folder), { force: true })
  await writeFile(orderFile(folder), String(number))
  const provoked = life.provoke(id).catch(() => undefined)
  const isDead = (): boolean => !existsSync(orderFile(folder))
  await eventually(`the server to die before step ${number}, or to be done`, async () => isDead() || await life.isDone(id).catch(() => false), { pollMs: 100 })
  // Its last steps may come after what it is done by can be seen.
  await noMoreSteps(folder, isDead)
  await provoked
  const died = !await takeBack(orderFile(folder))
  const steps = (await readFile(stepsFile(folder), 'utf8')).trimEnd().split('\n')
  if (died) {
    await server.kill9()
    await server.restart()
    await eventually('the next server to finish it', async () => await life.isDone(id), { explain: async () => `${steps.join(', ')}: ${JSON.stringify(await server.sdk.instances.get(id).catch(String))}` })
  }
  return { id, steps, died }
}
