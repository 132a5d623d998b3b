// Sends DNS messages from one address, over UDP or in pieces over TCP, and gives what comes back.
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect } from 'node:net'
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises'
import type { Random } from '../fuzz.ts'

export interface DnsPlace { readonly host: string, readonly port: number, readonly from?: string }

const TIMEOUT_MS = 3_000
const KEPT_BYTES = 2 ** 20

/** Whatever has come after this time, with the wait cut short once as many have come as were sent. */
export async function sendUdp ({ host, port, from }: DnsPlace, messages: readonly Buffer[], patienceMs: number): Promise<Buffer[]> {
  const socket = createSocket('udp4')
  const answers: Buffer[] = []
  const late = new AbortController()
  // A refused port is told by an error.
  socket.on('error', () => {})
  socket.on('message', answer => {
    answers.push(answer)
    if (answers.length === messages.length) late.abort()
  })
  if (from !== undefined) {
    socket.bind(0, from)
    await once(socket, 'listening')
  }
  for (const message of messages) await new Promise(resolve => { socket.send(message, port, host, resolve) })
  await delay(patienceMs, undefined, { signal: late.signal }).catch(() => {})
  await new Promise<void>(resolve => { socket.close(resolve) })
  return answers
}

/** Bytes as they are; what came back as whole messages. */
export async function sendTcp ({ host, port, from }: DnsPlace, pieces: readonly Buffer[], patienceMs: number): Promise<Buffer[]> {
  const socket = connect({ host, port, ...from === undefined ? {} : { localAddress: from } })
  let received = Buffer.alloc(0)
  socket.on('error', () => {})
  socket.on('data', chunk => { if (received.length < KEPT_BYTES) received = Buffer.concat([received, chunk]) })
  for (const piece of pieces) {
    if (socket.writable) socket.write(piece)
    await nextTurn()
  }
  await Promise.race([once(socket, 'close').catch(() => {}), delay(patienceMs)])
  socket.destroy()
  const answers: Buffer[] = []
  for (; received.length >= 2 && received.length >= 2 + received.readUInt16BE(0); received = received.subarray(2 + received.readUInt16BE(0))) answers.push(received.subarray(2, 2 + received.readUInt16BE(0)))
  return answers
}

/** Messages with their lengths before them, of which one in a few lies; cut where it does not fit. */
export function framed (random: Random, messages: readonly Buffer[]): Buffer[] {
  const bytes = Buffer.concat(messages.flatMap(message => {
    const length = Buffer.alloc(2)
    length.writeUInt16BE(random.once(10) ? random.below(65_536) : message.length)
    return [length, message]
  }))
  return random.pieces(bytes)
}

/** The answer to one right question, tried again as a client would; `undefined` when none comes. */
export async function askOnce (place: DnsPlace, query: Buffer): Promise<Buffer | undefined> {
  for (let attempt = 0; attempt < 3; attempt++) {
    const answer = (await sendUdp(place, [query], TIMEOUT_MS)).find(bytes => bytes.length >= 2 && bytes.readUInt16BE(0) === query.readUInt16BE(0))
    if (answer !== undefined) return answer
  }
  return undefined
}
