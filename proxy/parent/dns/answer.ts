// DNS answers for guests in mode `all`: a synthetic address that leads to this proxy. No query leaves the host, so no name carries data out.
import { createHash } from 'node:crypto'
import { canonicalHost } from '../../contract/canonical-host.ts'
import { CLASS_IN, RCODE, readQuestion, TYPE_A, writeAnswer, type Question } from './message.ts'

export interface DnsOptions {
  /** IPv4 range of the synthetic addresses */
  readonly syntheticRange: string
  readonly ttlSeconds: number
}

/** Makes the function that answers one query. */
export function createAnswer (options: DnsOptions): (query: Buffer) => Buffer {
  const [base = '0.0.0.0', bits = '32'] = options.syntheticRange.split('/')
  const size = 2 ** (32 - Number(bits))
  const first = Math.floor(numberOf(base) / size) * size
  return query => {
    const question = readQuestion(query)
    if (typeof question === 'number') return writeAnswer(query, undefined, question)
    if (question.class !== CLASS_IN) return writeAnswer(query, question, RCODE.refused)
    if (!isHost(question)) return writeAnswer(query, question, RCODE.noSuchName)
    // Other types have no records: nothing redirects the address of an AAAA, and HTTPS and SVCB would offer HTTP/3.
    if (question.type !== TYPE_A) return writeAnswer(query, question, RCODE.ok)
    return writeAnswer(query, question, RCODE.ok, addressFor(question.name, first, size), options.ttlSeconds)
  }
}

function isHost ({ name }: Question): boolean {
  const host = canonicalHost(name)
  return host !== undefined && host.family === 0 && name !== 'localhost' && !name.endsWith('.localhost') && !name.endsWith('.arpa')
}

/** A name has the same address after every restart, without any stored state. */
function addressFor (name: string, first: number, size: number): string {
  const hash = createHash('sha256').update(name).digest().readUInt32BE(0)
  // The first and the last address of the range are left out, since they look like a network and its broadcast.
  const address = size > 2 ? first + 1 + hash % (size - 2) : first
  return [24, 16, 8, 0].map(shift => Math.floor(address / 2 ** shift) % 256).join('.')
}

function numberOf (address: string): number {
  return address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
}
