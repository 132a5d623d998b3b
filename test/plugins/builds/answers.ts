// The commands of builds, whose answers test/cli/answers.long.test.ts checks by the API's document.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ADMIN_KEY } from '../../core/bare-app.ts'
import type { AnswersOfPlugin } from '../../cli/answers.ts'
import { startBuilds } from './app.ts'

export const answers: AnswersOfPlugin = {
  name: 'of builds',
  async check (t, checkAnswers) {
    const { app, runner } = await startBuilds(t, { listen: true })
    runner.onRun = (run) => { run.finish() }
    const folder = await mkdtemp(join(tmpdir(), 'berth-context-'))
    t.teardown(async () => { await rm(folder, { recursive: true }) })
    await writeFile(join(folder, 'Dockerfile'), 'FROM scratch\n')
    await checkAnswers(t, { url: app.address(), key: ADMIN_KEY }, [
      { args: ['build', folder, '-t', 'cli/built'], answers: 'GET /builds/{}' },
      { args: ['build', '-d', folder], answers: 'POST /builds' },
      { args: ['builds', 'ls'], answers: 'GET /builds' }
    ])
  }
}
