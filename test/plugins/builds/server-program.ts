// A server as a process of its own, to be killed: its builds do what their target says. Prints its address as it listens.
import { appendFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buildApp } from '../../../core/app.ts'
import { ADMIN_KEY, noBuiltIns } from '../../core/bare-app.ts'
import { hostPlugins } from './host.ts'
import { outcomeOf, ScriptedRunner } from './scripted-runner.ts'

const [dataDir = ''] = process.argv.slice(2)
const runner = new ScriptedRunner()

runner.onRun = async (run) => {
  const { job: { target }, progress } = run
  await progress.instance(`vm-${run.job.id}`)
  progress.log(`this one is ${target ?? ''}`)
  progress.log('and a last word')
  if (target === 'done') return run.finish()
  if (target === 'pushing' || target === 'pushed') await progress.pushing()
  if (target === 'pushed') await progress.pushed(outcomeOf(run.job))
}
runner.onClean = async (id) => { await appendFile(join(dataDir, 'cleaned'), `${id}\n`) }

const app = await buildApp({
  server: { dataDir, listen: '127.0.0.1:0', apiKey: ADMIN_KEY, metrics: { enabled: false } },
  plugins: { builds: { config: { concurrency: 4, builderDisk: '1GB' } } }
}, { environment: {}, builtIns: noBuiltIns, folder: dataDir, plugins: hostPlugins(runner), logStream: { write: () => {} } })
await app.start()
process.stdout.write(`${app.address()}\n`)
