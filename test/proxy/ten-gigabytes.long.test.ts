import t from 'tap'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { answered, openTls } from './helpers/guest.ts'
import { setStage } from './helpers/setup.ts'

const SIZE = 10 * 1000 ** 3
// Compared in place rather than hashed: hashing twenty gigabytes would take longer than moving them.
const BLOCK = randomBytes(1024 * 1024)
const REST_MS = 2_000
const SAMPLE_MS = 250

t.test('P8: ten gigabytes go down and up at once, whole, past readers that rest, and the proxy\'s memory stays what it is', { timeout: 900_000 }, async (t) => {
  const stage = await setStage(t)
  const outcomes: Record<string, boolean> = {}
  await stage.origin(100, {
    streaming: (seen, response) => {
      if (seen.method === 'PUT') {
        void isWhole(seen).then(whole => {
          outcomes['up'] = whole
          response.end('stored')
        })
      } else {
        response.writeHead(200, { 'content-length': SIZE })
        void pour(response)
      }
    }
  })
  const headers = { host: stage.host('api.good.test') }
  const memory = await watchMemory(stage.proxy.call)
  const down = async () => {
    const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
    const [response] = await once(request({ createConnection: () => socket, headers }).end(), 'response') as [IncomingMessage]
    outcomes['down'] = await isWhole(response)
    socket.destroy()
  }
  const up = async () => {
    const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
    const outgoing = request({ createConnection: () => socket, method: 'PUT', headers: { ...headers, 'content-length': SIZE } })
    const answer = answered(outgoing)
    await pour(outgoing)
    t.equal((await answer).text, 'stored')
    socket.destroy()
  }
  await Promise.all([down(), up()])
  t.same(outcomes, { down: true, up: true })
  const samples = memory.end()
  t.comment(`resident memory of the proxy: ${Math.min(...samples)} to ${Math.max(...samples)} MB in ${samples.length} samples`)
  t.ok(samples.length > 10)
  t.ok(Math.max(...samples) < 300, `${Math.max(...samples)} MB`)
})

/** Reads all of a body, with one rest half-way, in which nothing may pile up anywhere but in buffers of a fixed size. */
async function isWhole (body: Readable): Promise<boolean> {
  let received = 0
  let whole = true
  let rested = false
  for await (const chunk of body as AsyncIterable<Buffer>) {
    for (let done = 0; done < chunk.length;) {
      const at = (received + done) % BLOCK.length
      const length = Math.min(chunk.length - done, BLOCK.length - at)
      if (chunk.compare(BLOCK, at, at + length, done, done + length) !== 0) whole = false
      done += length
    }
    received += chunk.length
    if (!rested && received > SIZE / 2) {
      rested = true
      await delay(REST_MS)
    }
  }
  return whole && received === SIZE
}

async function pour (target: Writable): Promise<void> {
  for (let left = SIZE; left > 0; left -= BLOCK.length) if (!target.write(left < BLOCK.length ? BLOCK.subarray(0, left) : BLOCK)) await once(target, 'drain')
  target.end()
}

/** Samples of the proxy's resident memory in MB until `end`. */
async function watchMemory (call: (method: string, path: string) => Promise<{ body: string }>): Promise<{ end (): number[] }> {
  const samples: number[] = []
  const sample = async () => {
    const { body } = await call('GET', '/metrics')
    samples.push(Math.round(Number(/^process_resident_memory_bytes (\d+)/m.exec(body)?.[1]) / 1e6))
  }
  await sample()
  const timer = setInterval(() => { sample().catch(() => {}) }, SAMPLE_MS)
  return {
    end () {
      clearInterval(timer)
      return samples
    }
  }
}
