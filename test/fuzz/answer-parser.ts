// Every answer that the proxy's own parser takes reads the same in Node's. What only Node takes is no fault: ours is the narrow one.
import { request } from 'node:http'
import { Duplex } from 'node:stream'
import { BadAnswer } from '../../proxy/gate/bad-answer.ts'
import { AnswerParser } from '../../proxy/upstream/http1/answer-parser.ts'
import type { Fuzz } from './fuzz.ts'
import { answerBytes } from './helpers/http1-bytes.ts'

const HEADER_BYTES = 32 * 1024

interface Answer { readonly status: number, readonly reason: string, readonly raw: readonly string[], readonly body: string, readonly trailers: readonly string[] }

/** `undefined` when it is no whole answer. */
function ours (pieces: readonly Buffer[], toHead: boolean): Answer | undefined {
  let head: { status: number, reason: string, raw: readonly string[] } | undefined
  let body = ''
  let trailers: readonly string[] | undefined
  const parser = new AnswerParser({ answerBegan: began => { head = began }, answerBody: view => { body += view.toString('latin1') }, answerEnded: last => { trailers = last } }, HEADER_BYTES)
  parser.expect(toHead, false)
  try {
    for (const piece of pieces) parser.read(piece)
    parser.close()
  } catch (error) {
    if (error instanceof BadAnswer) return undefined
    throw error
  }
  return head === undefined || trailers === undefined ? undefined : { status: head.status, reason: head.reason, raw: head.raw, body, trailers }
}

async function nodes (pieces: readonly Buffer[], toHead: boolean): Promise<Answer | string> {
  const socket = new Duplex({ read () {}, write (_chunk, _encoding, done) { done() } })
  const outgoing = request({ createConnection: () => socket, method: toHead ? 'HEAD' : 'GET', maxHeaderSize: 2 * HEADER_BYTES }).end()
  outgoing.on('socket', () => setImmediate(() => {
    for (const piece of pieces) socket.push(piece)
    socket.push(null)
  }))
  return await new Promise(resolve => {
    outgoing.on('error', error => resolve(error.message))
    outgoing.on('response', response => {
      let body = ''
      response.on('data', (chunk: Buffer) => { body += chunk.toString('latin1') })
      response.on('error', error => resolve(error.message))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, reason: response.statusMessage ?? '', raw: response.rawHeaders, body, trailers: response.rawTrailers }))
    })
  })
}

export const fuzz: Fuzz = {
  seeds: [],
  async start () {
    return async random => {
      const toHead = random.once(6)
      const pieces = random.pieces(answerBytes(random))
      const input = `${toHead ? 'HEAD' : 'GET'} ${JSON.stringify(pieces.map(piece => piece.toString('latin1')))}`
      const mine = ours(pieces, toHead)
      if (mine === undefined) return { input }
      const theirs = await nodes(pieces, toHead)
      return JSON.stringify(mine) === JSON.stringify(theirs) ? { input } : { input, fault: `ours: ${JSON.stringify(mine)}\nNode's: ${JSON.stringify(theirs)}` }
    }
  }
}
