// The far side's name server on port 53: questions of the usual types go to the one that tests write down, and HTTPS and SVCB have an answer, so that it shows who leaves it out.
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { readQuestion } from '../../../../proxy/parent/dns/message.ts'
import type { TestNames } from '../../../proxy/helpers/names.ts'
import { HTTPS, SVCB } from './contract.ts'

/** priority 1, the target is the name itself, and `alpn=h3` */
const OFFER = Buffer.from([0, 1, 0, 0, 1, 0, 3, 2, 0x68, 0x33])

export async function startNameServer (address: string, names: TestNames): Promise<void> {
  const [host = '', port = ''] = names.server.split(':')
  const socket = createSocket('udp4')
  socket.on('message', (query, from) => {
    const question = readQuestion(query)
    if (typeof question === 'number') return
    if (question.type === HTTPS || question.type === SVCB) {
      names.asked.push(question.name)
      socket.send(offer(query, question.end, question.type), from.port, from.address)
      return
    }
    const asking = createSocket('udp4')
    asking.once('message', (answer) => {
      socket.send(answer, from.port, from.address)
      asking.close()
    })
    asking.send(query, Number(port), host)
  })
  socket.bind(53, address)
  await once(socket, 'listening')
}

function offer (query: Buffer, end: number, type: number): Buffer {
  const header = Buffer.from(query.subarray(0, 12))
  header.writeUInt16BE(0x8180, 2)
  header.writeUInt16BE(1, 6)
  header.writeUInt32BE(0, 8)
  const fixed = Buffer.from([0xc0, 0x0c, 0, type, 0, 1, 0, 0, 0, 60, 0, OFFER.length])
  return Buffer.concat([header, query.subarray(12, end), fixed, OFFER])
}
