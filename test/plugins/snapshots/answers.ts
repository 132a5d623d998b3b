// The commands of snapshots, whose answers test/cli/answers.long.test.ts checks by the API's document.
import { ADMIN_KEY } from '../../core/bare-app.ts'
import { firstId, type AnswersOfPlugin } from '../../cli/answers.ts'
import { startWithSnapshots } from './app.ts'

export const answers: AnswersOfPlugin = {
  name: 'of standby, forks and snapshots',
  async check (t, checkAnswers) {
    const { app, make, waitFor } = await startWithSnapshots(t, { listen: true })
    for (const name of ['web', 'other']) {
      await make(name)
      await waitFor(name, 'Running')
    }
    const server = { url: app.address(), key: ADMIN_KEY }
    await checkAnswers(t, server, [
      { args: ['snapshot', 'create', 'web', '--name', 'warm', '--tag', 'team=a'], answers: 'POST /instances/{}/snapshots' },
      { args: ['fork', '--from-running', 'web', 'twin'], answers: 'POST /instances/{}/fork' },
      { args: ['standby', 'web', 'other'], answers: 'POST /instances/{}/standby', many: true },
      { args: ['restore', 'other'], answers: 'POST /instances/{}/restore' },
      { args: ['snapshot', 'ls'], answers: 'GET /snapshots' },
      { args: ['snapshot', 'schedule', 'set', 'web', '--interval', '1h', '--max-count', '3'], answers: 'PUT /instances/{}/snapshot-schedule' },
      { args: ['snapshot', 'schedule', 'get', 'web'], answers: 'GET /instances/{}/snapshot-schedule' }
    ])
    const snapshot = await firstId(server, 'snapshot', 'ls', '--name', 'warm')
    await checkAnswers(t, server, [
      { args: ['snapshot', 'inspect', snapshot], answers: 'GET /snapshots/{}' },
      { args: ['snapshot', 'fork', snapshot, 'third'], answers: 'POST /snapshots/{}/fork' },
      { args: ['snapshot', 'restore', 'web', snapshot], answers: 'POST /instances/{}/snapshots/{}/restore' }
    ])
  }
}
