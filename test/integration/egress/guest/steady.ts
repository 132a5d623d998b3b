// Runs in a guest: one request after the other over a kept connection, for ever, and a line for each in a file. What it does when its machine has slept is the question.
import { once } from 'node:events'
import { appendFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import type { IncomingMessage } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'

const [url = '', mock = '', log = ''] = process.argv.slice(2)
const agent = new Agent({ keepAlive: true, maxSockets: 1 })
for (let number = 1; ; number++) {
  const began = performance.now()
  let line: string
  try {
    const outgoing = request(`${url}?number=${number}`, { agent, headers: { authorization: `Bearer ${mock}` } })
    const answered = once(outgoing, 'response') as Promise<[IncomingMessage]>
    outgoing.end()
    const [answer] = await answered
    for await (const part of answer) void part
    line = String(answer.statusCode)
  } catch (error) {
    line = error instanceof Error && 'code' in error ? String(error.code) : String(error)
  }
  appendFileSync(log, `${number} ${line} ${Math.round(performance.now() - began)}\n`)
  await delay(200)
}
