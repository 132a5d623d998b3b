// A DNS server that answers with 203.0.113.7, after a second for names that begin with `slow`, and never for those that begin with `x`. Its argument is its address.
import { createSocket } from 'node:dgram'
import { setTimeout as delay } from 'node:timers/promises'

const HEADER_BYTES = 12
const ANSWER = Buffer.from('c00c000100010000003c0004cb007107', 'hex')

const socket = createSocket({ type: 'udp4', recvBufferSize: 2 ** 22 })
socket.on('message', (question, from) => {
  const first = question.toString('latin1', HEADER_BYTES + 1)
  if (first.startsWith('x')) return
  const header = Buffer.from(question.subarray(0, HEADER_BYTES))
  header.writeUInt16BE(0x8180, 2)
  header.writeUInt16BE(1, 6)
  header.writeUInt16BE(0, 10)
  // The question ends with its type and class, after the name's empty label.
  const end = question.indexOf(0, HEADER_BYTES) + 5
  const isAddress = question.readUInt16BE(end - 4) === 1
  if (!isAddress) header.writeUInt16BE(0, 6)
  const reply = Buffer.concat([header, question.subarray(HEADER_BYTES, end), ...isAddress ? [ANSWER] : []])
  void delay(first.startsWith('slow') ? 1000 : 0).then(() => socket.send(reply, from.port, from.address))
})
socket.bind(53, process.argv[2])
