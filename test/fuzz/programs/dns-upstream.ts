// A DNS server that answers names below `fine.test` rightly and every other as a hostile one does. Its argument is its address; each line of its input is the seed of what it answers from then on.
import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { Random } from '../fuzz.ts'
import { answersBytes, HEADER_BYTES, nameBytes, rightAnswer } from '../helpers/dns-bytes.ts'
import { RIGHT, victimOf } from '../helpers/dns-names.ts'

const PORT = 53
const FINE = nameBytes('fine.test').toString('latin1')
const [address = ''] = process.argv.slice(2)
let seed = 0
let random = new Random(0)

function answer (query: Buffer): Buffer[] {
  if (query.length < HEADER_BYTES) return []
  // Whoever asks may write in capitals.
  return query.toString('latin1', HEADER_BYTES).toLowerCase().includes(FINE) ? [rightAnswer(query, RIGHT)] : answersBytes(random, query, victimOf(seed))
}

const udp = createSocket({ type: 'udp4', recvBufferSize: 2 ** 22 })
udp.on('message', (query, from) => { for (const bytes of answer(query)) udp.send(bytes, from.port, from.address) })
udp.on('error', () => {})
const tcp = createServer(socket => {
  socket.on('error', () => socket.destroy())
  socket.on('data', chunk => {
    if (chunk.length < 2) return
    for (const bytes of answer(chunk.subarray(2))) {
      const length = Buffer.alloc(2)
      length.writeUInt16BE(random.once(6) ? random.below(65_536) : Math.min(bytes.length, 65_535))
      socket.write(Buffer.concat([length, bytes]))
    }
    if (random.once(3)) socket.end()
  })
})
tcp.listen(PORT, address)
udp.bind(PORT, address, () => { process.stdout.write('ready\n') })
createInterface({ input: process.stdin }).on('line', line => {
  seed = Number(line)
  random = new Random(seed)
  process.stdout.write('set\n')
}).on('close', () => { process.exit() })
