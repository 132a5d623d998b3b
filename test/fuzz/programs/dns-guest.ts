// A guest that asks: each line of its input is an order, each of its output what came of it. `attack` sends what follows from a seed, `ask` one right question.
import { createInterface } from 'node:readline'
import { Random } from '../fuzz.ts'
import { nameBytes, queryBytes } from '../helpers/dns-bytes.ts'
import { askOnce, framed, sendTcp, sendUdp } from '../helpers/dns-client.ts'
import { hostileName } from '../helpers/dns-names.ts'

export type GuestOrder = { readonly do: 'attack', readonly host: string, readonly seed: number } | { readonly do: 'ask', readonly host: string, readonly name: string }

const PORT = 53
const PATIENCE_MS = 30
const HEADER = Buffer.from('123401000001000000000000', 'hex')

async function obey (order: GuestOrder): Promise<string> {
  const place = { host: order.host, port: PORT }
  if (order.do === 'ask') return (await askOnce(place, Buffer.concat([HEADER, nameBytes(order.name), Buffer.from([0, 1, 0, 1])])))?.toString('hex') ?? 'silence'
  const random = new Random(order.seed)
  const overTcp = random.once(4)
  const messages = [queryBytes(random, hostileName(order.seed)), ...random.many(3, () => queryBytes(random, hostileName(order.seed)))]
  const answers = overTcp ? await sendTcp(place, framed(random, messages), PATIENCE_MS) : await sendUdp(place, messages, PATIENCE_MS)
  return `${overTcp ? 'TCP' : 'UDP'}, ${answers.length} answers to ${messages.map(message => message.toString('hex')).join(' ')}`
}

for await (const line of createInterface({ input: process.stdin })) {
  const order: GuestOrder = JSON.parse(line)
  process.stdout.write(`${JSON.stringify(await obey(order))}\n`)
}
process.exit()
