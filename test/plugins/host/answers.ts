// The commands of the host, whose answers test/cli/answers.long.test.ts checks by the API's document.
import { ADMIN_KEY } from '../../core/bare-app.ts'
import type { AnswersOfPlugin } from '../../cli/answers.ts'
import { startHost } from './app.ts'

export const answers: AnswersOfPlugin = {
  name: 'of the host',
  async check (t, checkAnswers) {
    const { url } = await startHost(t)
    await checkAnswers(t, { url, key: ADMIN_KEY }, [
      { args: ['host', 'checks'], answers: 'GET /host/checks' },
      { args: ['host', 'processes'], answers: 'GET /host/processes' },
      { args: ['host', 'log'], answers: 'GET /host/log' }
    ])
  }
}
