// The commands of devices, whose answers test/cli/answers.long.test.ts checks by the API's document.
import { ADMIN_KEY } from '../../core/bare-app.ts'
import type { AnswersOfPlugin } from '../../cli/answers.ts'
import { startWithDevices, TREE } from './app.ts'

export const answers: AnswersOfPlugin = {
  name: 'of devices',
  async check (t, checkAnswers) {
    const { app } = await startWithDevices(t, TREE, { listen: true })
    await checkAnswers(t, { url: app.address(), key: ADMIN_KEY }, [
      { args: ['device', 'available'], answers: 'GET /devices/available' },
      { args: ['device', 'register', '0000:01:00.0', '--name', 'gpu'], answers: 'POST /devices' },
      { args: ['device', 'ls'], answers: 'GET /devices' }
    ])
  }
}
