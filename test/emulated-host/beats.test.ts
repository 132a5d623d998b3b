import { utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { testFolder } from '../helpers/folder.ts'
import { whileItBeats } from './beats.ts'

const TIMES = { stillMs: 2000, lookMs: 20 }
const endOf = async (signal: AbortSignal): Promise<string> => {
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
  return 'ended'
}

t.test('a host that stands still is ended', async (t) => {
  const beat = join(testFolder(t), 'beat')
  await writeFile(beat, '')
  t.same(await whileItBeats(beat, endOf, TIMES), { result: 'ended', stoodStill: true })
})

t.test('a host that beats, or has not begun to, is left alone', async (t) => {
  const beat = join(testFolder(t), 'beat')
  const life = async (signal: AbortSignal): Promise<string> => {
    await delay(TIMES.stillMs * 1.5)
    await writeFile(beat, '')
    for (let second = 1; second <= 30; second++) {
      await delay(TIMES.stillMs / 20)
      await utimes(beat, second, second)
    }
    return signal.aborted ? 'was aborted' : 'came to its end'
  }
  t.same(await whileItBeats(beat, life, TIMES), { result: 'came to its end', stoodStill: false })
})

t.test('what fails fails as it does without', async (t) => {
  await t.rejects(whileItBeats(join(testFolder(t), 'beat'), async () => { throw new Error('no such host') }, TIMES), { message: 'no such host' })
})
