// A server on a scripted host that keeps forks of a copy ready, and what a test wants to know of them.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Test } from 'tap'
import type { InstanceCopy } from '../../../plugins/instances/contract.ts'
import type { StartOptions } from './app.ts'
import { withCopies, type CopiesApp } from './copies-app.ts'
import { until } from './crash.ts'
import type { ScriptedVm } from './scripted.ts'
import { startWithTemplates, type TemplateApp } from './templates-app.ts'

export interface SpareForksApp extends CopiesApp, TemplateApp {}

export interface Original extends SpareForksApp {
  /** of the instance `web` */
  readonly id: string
  /** of that instance, while it ran; its files are `one` */
  readonly copy: InstanceCopy
  /** Makes forks of the copy, all at once, and gives their ids. */
  fork (...names: string[]): Promise<string[]>
  /** Waits until there are so many spare forks, and gives them. */
  spares (count: number): Promise<ScriptedVm[]>
}

export async function startWithSpareForks (t: Test, options: StartOptions = {}): Promise<SpareForksApp> {
  return await withCopies(t, options, startWithTemplates)
}

/** With the template of the instance `web`, and a spare VM of it unless no VM is kept ready at all. */
export async function copied (t: Test, { fields = {}, ...options }: StartOptions & { readonly fields?: Record<string, unknown> } = {}): Promise<Original> {
  const app = await startWithSpareForks(t, options)
  const { copies, files, host } = app
  const id = await app.make('web', { env: { A: 'b' }, tags: { team: 'x' }, ...fields })
  await app.waitFor('web', 'Running')
  const { spares = 1 } = Object(options.config?.['templates'])
  await until(async () => await app.count('templates') === 1 && await app.count('spares') === Math.min(spares, 1))
  const copy = await copies.capture('web', 'Standby', files('one'))
  return {
    ...app,
    id,
    copy,
    fork: async (...names) => (await Promise.all(names.map(async (name) => await copies.fork(copy, files('one'), { name })))).map((view) => String(Object(view).id)),
    async spares (count) {
      const isReady = async (): Promise<boolean> => await app.count('spares') === host.vms.filter(({ state }) => state.status === 'paused').length
      await until(async () => asleep(host.vms).length === count && await isReady())
      return asleep(host.vms)
    }
  }
}

/** Waits until every folder is that of a row. */
export async function tidied ({ remains }: Pick<SpareForksApp, 'remains'>): Promise<void> {
  await until(async () => {
    const { folders, rows } = await remains()
    return isDeepStrictEqual(folders, rows)
  })
}

/** Those that wait to become forks. */
export function asleep (vms: readonly ScriptedVm[]): ScriptedVm[] {
  return vms.filter(({ phase, state }) => phase === 'asleep' && state.status === 'paused')
}

/** What an instance was forked of. */
export async function wayOf ({ dataDir }: Pick<SpareForksApp, 'dataDir'>, id: string): Promise<string> {
  const log = await readFile(join(dataDir, 'instances', id, 'operations.log'), 'utf8')
  return log.includes('fork: from a spare VM: ') ? 'spare' : 'copy'
}
