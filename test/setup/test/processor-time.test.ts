// What `--times` prints: processor time of a test file with all that it starts, and its sums.
import { join } from 'node:path'
import t from 'tap'
import type { FileOutcome } from '../../../setup/test/count.ts'
import { startMeter, timesOf } from '../../../setup/test/processor-time.ts'
import { runFile } from '../../../setup/test/run-file.ts'
import { testFolder } from '../../helpers/folder.ts'

const lacking = await startMeter(`berth-test-meter-${process.pid}`).then(async (meter) => { await meter.end() }, (error: Error) => error.message)

t.test('the processor time of a file counts what a process that nobody waits for has used', { skip: lacking ?? false }, async (t) => {
  const worker = 'while (process.cpuUsage().user < 700000); require("node:fs").writeFileSync(process.argv[1], "")'
  const folder = testFolder(t, {
    'a.test.js': `import { spawn } from 'node:child_process'
      import { existsSync } from 'node:fs'
      const done = import.meta.dirname + '/done'
      spawn('sh', ['-c', 'setsid "$0" -e "$@" >/dev/null &', process.execPath, ${JSON.stringify(worker)}, done], { stdio: 'ignore' })
      while (!existsSync(done)) await new Promise((resolve) => setTimeout(resolve, 50))
      console.log("TAP version 14\\nok 1 - x\\n1..1")`
  })
  const file = { source: 'a.test.ts', compiled: join(folder, 'a.test.js') }
  const options = { bound: () => 120, signal: new AbortController().signal }
  const { count, processorSeconds = 0 } = await runFile(file, { ...options, times: true })
  t.strictSame(count, { passed: 1, failed: 0, skipped: 0 })
  t.ok(processorSeconds > 0.5 && processorSeconds < 30, `${processorSeconds} s`)
  t.equal((await runFile({ ...file, compiled: '/dev/null' }, options)).processorSeconds, undefined, 'nobody asked')
})

t.test('the table has the files and their folders, the most expensive first, and the sum', async (t) => {
  const outcome = (name: string, processorSeconds?: number): FileOutcome =>
    ({ name, count: { passed: 1, failed: 0, skipped: 0 }, failures: [], skips: [], durationMs: 1, said: '', processorSeconds })
  t.strictSame(timesOf([outcome('lint'), outcome('test/core/a.test.ts', 1), outcome('test/plugins/b/c.test.ts', 30.04), outcome('test/core/http/d.test.ts', 12)]), [
    'processor seconds by file:', '    30.0  test/plugins/b/c.test.ts', '    12.0  test/core/http/d.test.ts', '     1.0  test/core/a.test.ts',
    'by folder:', '    30.0  test/plugins/b', '    12.0  test/core/http', '     1.0  test/core', '    43.0  all'
  ])
})
