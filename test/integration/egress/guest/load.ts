// Runs in a guest: keeps a number of requests in flight until told to stop on its standard input. A line with a number there begins a new generation, of
// which each later request tells in its path. Prints `generation N` when no request of before N is begun any more, and at the end what came.
import { once } from 'node:events'
import { Agent, request } from 'node:https'
import type { IncomingMessage } from 'node:http'
import { createInterface } from 'node:readline'

const [origin = '', mock = '', width = '1'] = process.argv.slice(2)
const agent = new Agent({ keepAlive: true, maxSockets: Number(width) })
const found = { ok: 0, broken: 0, statuses: {} as Record<string, number> }
const state = { generation: 0, count: 0, isDone: false }

async function one (): Promise<void> {
  const number = ++state.count
  const outgoing = request(`${origin}/held?generation=${state.generation}&number=${number}`, { agent, headers: { authorization: `Bearer ${mock}` } })
  try {
    const answered = once(outgoing, 'response') as Promise<[IncomingMessage]>
    outgoing.end()
    const [answer] = await answered
    for await (const part of answer) void part
    found.ok++
    const status = String(answer.statusCode)
    found.statuses[status] = (found.statuses[status] ?? 0) + 1
  } catch {
    // What carries an older value is ended by the proxy; a client then tries again.
    found.broken++
  }
}

const running = Array.from({ length: Number(width) }, async () => { while (!state.isDone) await one() })
for await (const line of createInterface({ input: process.stdin })) {
  state.generation = Number(line)
  console.log(`generation ${state.generation}`)
}
state.isDone = true
await Promise.all(running)
console.log(JSON.stringify(found))
process.exit(0)
