// A DNS server whose answers a test writes down, and which notes what it was asked.
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { isIPv4 } from 'node:net'
import { CLASS_IN, RCODE, readQuestion, TYPE_A, writeAnswer, type Question } from '../../../proxy/parent/dns/message.ts'

const TYPE_AAAA = 28

export interface TestNames {
  readonly server: string
  /** name → addresses; IPv6 ones answer AAAA. A function is called for each query of type A. */
  readonly records: Map<string, readonly string[] | (() => readonly string[])>
  /** name → milliseconds from its first question to its answers, Infinity for none; as a server takes them that asks others first */
  readonly delays: Map<string, number>
  readonly asked: string[]
  close (): void
}

/** Starts the server on an address. @param port a free one without it */
export async function startNames (address: string, port = 0): Promise<TestNames> {
  const records = new Map<string, readonly string[] | (() => readonly string[])>()
  const delays = new Map<string, number>()
  const firstAsked = new Map<string, number>()
  const asked: string[] = []
  let closed = false
  const socket: Socket = createSocket('udp4')
  socket.on('message', (query, from) => {
    const question = readQuestion(query)
    if (typeof question === 'number') return
    asked.push(question.name)
    const first = firstAsked.get(question.name) ?? performance.now()
    firstAsked.set(question.name, first)
    const waitMs = first + (delays.get(question.name) ?? 0) - performance.now()
    if (waitMs <= 0) reply(query, question, from)
    else if (waitMs < Infinity) setTimeout(() => { if (!closed) reply(query, question, from) }, waitMs)
  })
  const reply = (query: Buffer, question: Question, from: RemoteInfo): void => {
    const found = records.get(question.name)
    if (question.type === TYPE_AAAA) {
      const v6 = typeof found === 'function' ? [] : found?.filter(entry => !isIPv4(entry)) ?? []
      return socket.send(answer(query, question.end, v6.map(bytes6)), from.port, from.address)
    }
    if (question.type !== TYPE_A || question.class !== CLASS_IN) return
    const v4 = (typeof found === 'function' ? found() : found ?? []).filter(isIPv4)
    if (found === undefined) return socket.send(writeAnswer(query, question, RCODE.noSuchName), from.port, from.address)
    socket.send(answer(query, question.end, v4.map(entry => Buffer.from(entry.split('.').map(Number)))), from.port, from.address)
  }
  socket.bind(port, address)
  await once(socket, 'listening')
  return {
    server: `${address}:${socket.address().port}`,
    records,
    delays,
    asked,
    close () {
      if (!closed) socket.close()
      closed = true
    }
  }
}

function answer (query: Buffer, end: number, addresses: readonly Buffer[]): Buffer {
  const header = Buffer.from(query.subarray(0, 12))
  header.writeUInt16BE(0x8180, 2)
  header.writeUInt16BE(addresses.length, 6)
  header.writeUInt32BE(0, 8)
  const records = addresses.map(address => {
    const fixed = Buffer.alloc(12)
    fixed.writeUInt16BE(0xc00c, 0)
    fixed.writeUInt16BE(address.length === 4 ? TYPE_A : TYPE_AAAA, 2)
    fixed.writeUInt16BE(CLASS_IN, 4)
    fixed.writeUInt32BE(1, 6)
    fixed.writeUInt16BE(address.length, 10)
    return Buffer.concat([fixed, address])
  })
  return Buffer.concat([header, query.subarray(12, end), ...records])
}

function bytes6 (address: string): Buffer {
  const [left = '', right = ''] = address.split('::')
  const groups = (text: string) => text === '' ? [] : text.split(':')
  const missing = 8 - groups(left).length - groups(right).length
  const all = [...groups(left), ...new Array<string>(missing).fill('0'), ...groups(right)]
  const bytes = Buffer.alloc(16)
  for (const [index, group] of all.entries()) bytes.writeUInt16BE(Number.parseInt(group, 16), index * 2)
  return bytes
}
