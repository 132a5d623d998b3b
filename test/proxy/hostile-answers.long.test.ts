import t from 'tap'
import { setArena } from './helpers/arena.ts'
import { answersOfHttp1, answersOfHttp2, type HostileAnswer } from './helpers/hostile-answers.ts'
import { playAll } from './helpers/play-all.ts'

/** Many answers never end. */
const PATIENCE_MS = 300

const asked = ({ method = 'GET' }: HostileAnswer) => ({ method, ...method === 'POST' ? { body: 'a body' } : {} })

t.test('no answer of an HTTP/1.1 origin ends the proxy, nor holds up another VM, whatever its guest speaks', async (t) => {
  const arena = await setArena(t)
  arena.patienceMs = PATIENCE_MS
  for (const way of ['plain', 'HTTP/1.1', 'HTTP/2'] as const) {
    await playAll(t, arena, answersOfHttp1(), async answer => {
      arena.play = answer.play
      if (way === 'plain') await arena.viaHttp1(arena.names.plain, asked(answer))
      else if (way === 'HTTP/1.1') await arena.viaHttp1(arena.names.http1, asked(answer))
      else await arena.viaHttp2(arena.names.http1, asked(answer))
    })
  }
})

t.test('no answer of an HTTP/2 origin ends the proxy, nor holds up another VM', async (t) => {
  const arena = await setArena(t)
  arena.patienceMs = PATIENCE_MS
  await playAll(t, arena, answersOfHttp2(), async answer => {
    arena.play = answer.play
    await arena.viaHttp2(arena.names.http2, asked(answer))
  })
})
