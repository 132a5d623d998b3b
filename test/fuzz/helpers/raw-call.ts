// One HTTP request whose every part a case chooses, and its whole answer.
import { request, type OutgoingHttpHeaders } from 'node:http'

export interface RawCall {
  readonly method: string
  readonly path: string
  readonly headers?: OutgoingHttpHeaders
  readonly body?: Buffer
}

export interface RawAnswer {
  readonly status: number
  readonly type: string
  readonly text: string
}

const KEPT_BYTES = 2 ** 20

/** What Node would not send by itself is a fault of the case: it gives `undefined`, as a connection that ends without an answer does. */
export async function rawCall (where: { readonly socketPath: string } | { readonly host: string, readonly port: number }, { method, path, headers = {}, body }: RawCall, patienceMs: number): Promise<RawAnswer | 'no answer' | 'silence'> {
  return await new Promise(resolve => {
    let outgoing
    try {
      // A server may close a connection that is its request's alone while the body still comes, and the answer is lost with it.
      outgoing = request({ ...where, method, path, headers: { connection: 'keep-alive', ...body === undefined ? {} : { 'content-length': body.length }, ...headers }, agent: false })
    } catch {
      resolve('no answer')
      return
    }
    const timer = setTimeout(() => { finish('silence') }, patienceMs)
    const finish = (answer: RawAnswer | 'no answer' | 'silence'): void => {
      clearTimeout(timer)
      outgoing.destroy()
      resolve(answer)
    }
    outgoing.on('error', () => { finish('no answer') })
    outgoing.on('upgrade', () => { finish({ status: 101, type: '', text: '' }) })
    outgoing.on('response', response => {
      const answer = (): RawAnswer => ({ status: response.statusCode ?? 0, type: response.headers['content-type'] ?? '', text })
      let text = ''
      response.on('data', (chunk: Buffer) => {
        text += chunk.toString()
        // Events and logs do not end.
        if (text.length > KEPT_BYTES || answer().type.startsWith('text/event-stream')) finish(answer())
      })
      response.on('close', () => { finish(answer()) })
      if (response.headers['content-type']?.startsWith('text/event-stream') === true) finish(answer())
    })
    outgoing.end(body)
  })
}
