// Memory images and copies leave as much of the disk free as must stay free: one that took the last of it would stop every VM that writes.
import { once } from 'node:events'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { failureOf } from '../../helpers/failure.ts'
import { withoutMounts } from '../../helpers/rights.ts'
import { fillDisk, smallDisk } from '../../helpers/small-disk.ts'
import { startWithCopies, type Source } from './copies-app.ts'
import { until } from './crash.ts'
import type { ImagingStep, ScriptedHost } from './scripted.ts'
import { startWithTemplates } from './templates-app.ts'

const needsRoot = { skip: withoutMounts }
const short = { code: 'insufficient_resources', message: /full/ }
const refused = { status: 409, body: short }

interface OnSmallDisk extends Source {
  readonly steps: ImagingStep[]
  readonly filler: string
  /** what is in the instances' folder, and in that of copies */
  made (): Promise<string[]>
}

/** An instance `web` that runs, on a disk of which a twentieth must stay free. */
async function onSmallDisk (t: Test, mib: number, config: Record<string, unknown>): Promise<OnSmallDisk> {
  const disk = await smallDisk(t, mib)
  const app = await startWithCopies(t, { dataDir: join(disk, 'data'), config })
  const id = await app.make('web', { size: '128MB' })
  await app.waitFor('web', 'Running')
  const steps: ImagingStep[] = []
  app.host.onStep = (step) => { steps.push(step) }
  const made = async (): Promise<string[]> => [...await readdir(join(app.dataDir, 'instances')), ...await readdir(app.copiesFolder)]
  return { ...app, id, steps, filler: join(disk, 'filler'), made }
}

/** Fills the disk while a VM is captured that a signal may end, and waits for that. */
function shortAtCapture (filler: string): NonNullable<ScriptedHost['onStep']> {
  return async (step, _vm, signal) => {
    if (step !== 'captured' || signal === undefined) return
    await fillDisk(filler, 2 ** 20)
    if (!signal.aborted) await once(signal, 'abort')
  }
}

t.test('on a disk that is short nothing is begun, and the instance goes on', needsRoot, async (t) => {
  const { app, call, copies, files, filler, id, made, steps } = await onSmallDisk(t, 50, { memoryFiles: false })
  await fillDisk(filler, 2 ** 21)
  t.match(await call('POST', '/instances/web/standby'), refused)
  t.match(await call('POST', '/instances/web/fork', { name: 'fork', from_running: true }), refused)
  t.match(await failureOf(copies.capture('web', 'Standby', files('one'))), short)
  t.notOk(steps.some((step) => step === 'capture' || step === 'copy-ahead'))
  t.match((await call('GET', '/instances/web')).body, { state: 'Running', has_snapshot: false })
  await call('POST', '/instances/web/stop')
  t.match(await failureOf(copies.capture('web', 'Stopped', files('one'))), short)
  t.same(await made(), [id])
  await rm(filler)
  t.match(await copies.capture('web', 'Stopped', files('one')), { kind: 'Stopped' })
  await app.stop()
})

for (const [what, begin] of [
  ['standby', async (t, { call }) => { t.match(await call('POST', '/instances/web/standby'), refused) }],
  ['fork', async (t, { call }) => { t.match(await call('POST', '/instances/web/fork', { name: 'fork', from_running: true }), refused) }],
  ['copy', async (t, { copies, files }) => { t.match(await failureOf(copies.capture('web', 'Standby', files('one'))), short) }]
] as ReadonlyArray<readonly [string, (t: Test, app: OnSmallDisk) => Promise<void>]>) {
  t.test(`a ${what} ends when the disk runs short, and leaves nothing`, needsRoot, async (t) => {
    const small = await onSmallDisk(t, 50, { memoryFiles: false })
    const { app, call, filler, host, id, made } = small
    host.onStep = shortAtCapture(filler)
    await begin(t, small)
    t.same(await made(), [id])
    t.match((await call('GET', '/instances/web')).body, { state: 'Running', has_snapshot: false })
    t.match(host.vm, { phase: 'running', state: { status: 'running' } })
    await rm(filler)
    host.onStep = undefined
    t.match(await call('POST', '/instances/web/standby'), { status: 200, body: { state: 'Standby' } })
    await app.stop()
  })
}

t.test('the making of a template ends when the disk runs short, and leaves nothing', needsRoot, async (t) => {
  const disk = await smallDisk(t, 400)
  const { app, host, lines, make, remains } = await startWithTemplates(t, { dataDir: join(disk, 'data') })
  host.onStep = shortAtCapture(join(disk, 'filler'))
  const id = await make('web', { size: '128MB' })
  await until(async () => lines.some(({ msg, err }) => /a template.* could not be made/.test(String(msg)) && /too little space/.test(JSON.stringify(err))))
  t.match(await remains(), { folders: [id], rows: [id], templates: [] })
  await app.stop()
})

t.test('a VM whose memory is in a file already goes to standby on a disk that is short', needsRoot, async (t) => {
  const { app, call, filler } = await onSmallDisk(t, 300, { memoryFiles: true })
  await fillDisk(filler, 2 ** 21)
  t.match(await call('POST', '/instances/web/standby'), { status: 200, body: { state: 'Standby' } })
  t.match(await call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
  await app.stop()
})
