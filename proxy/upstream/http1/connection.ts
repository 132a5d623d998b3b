// One HTTP/1.1 connection to an origin, which carries one request at a time.
import type { Socket } from 'node:net'
import { Refusal } from '../../contract/reasons.ts'
import type { AnswerHead } from './answer-head.ts'
import { AnswerParser, type AnswerSink } from './answer-parser.ts'
import { BadAnswer } from '../../gate/bad-answer.ts'
import { fail, type OriginCall, type OutgoingHead, type RequestCarrier } from './call.ts'
import { fieldLines } from './fields.ts'
import { requestText } from './request-text.ts'

/** The owner of a connection that carries no request. */
export interface ConnectionOwner {
  /** The connection may carry another request. */
  free (connection: OriginConnection): void
  /** The connection is closed. */
  gone (connection: OriginConnection): void
}

/** Time that a request needs to arrive before the origin closes an unused connection. */
const MARGIN_MS = 1_000

/** The owner of the socket below. */
export interface SocketOwner {
  /** Nobody uses it any more: what was written is still sent, and then it is closed. */
  letGo (socket: Socket): void
}

export class OriginConnection implements AnswerSink, RequestCarrier {
  readonly #owner: ConnectionOwner
  readonly #parser: AnswerParser
  #socket: Socket | undefined
  #sockets: SocketOwner | undefined
  #call: OriginCall | undefined
  /** the rest of the request's body; 'over' when all of it was written */
  #request: number | 'chunked' | 'tunnel' | 'over' = 'over'
  #answer: 'awaited' | 'header' | 'body' | 'over' = 'over'
  /** whether another request may follow */
  #persistent = true
  /** whether it waited for a request, during which the origin may have closed it */
  #waited = false
  #heard = false
  /** how long the origin keeps it unused, and since when it is unused */
  #keptMs = Number.POSITIVE_INFINITY
  #freeSinceMs = 0
  #error: unknown

  constructor (owner: ConnectionOwner, headerBytes: number) {
    this.#owner = owner
    this.#parser = new AnswerParser(this, headerBytes)
  }

  /** Takes over the socket; its bytes go to `read`. */
  open (socket: Socket, sockets: SocketOwner): void {
    this.#socket = socket
    this.#sockets = sockets
    socket.on('error', error => { this.#error = error })
    socket.on('end', () => this.#run(() => this.#ended()))
    socket.on('close', () => this.#run(() => this.#closed()))
  }

  /** Whether it can carry a request now, as far as this side knows. */
  get usable (): boolean {
    return this.#persistent && this.#socket?.writable === true && performance.now() - this.#freeSinceMs < this.#keptMs - MARGIN_MS
  }

  get diedUnused (): boolean {
    return this.#waited && !this.#heard
  }

  /** Writes the header of a request. `false` when the request is no longer wanted or its header is invalid: then the connection stays free. Never throws. */
  carry (call: OriginCall): boolean {
    try {
      return this.#carry(call)
    } catch (error) {
      this.#call = undefined
      this.#persistent = false
      this.destroy()
      call.fault(error)
      return true
    }
  }

  #carry (call: OriginCall): boolean {
    const head = call.head()
    if (head === undefined) return false
    const text = requestText(head)
    if (text === undefined) {
      fail(call, new Refusal('bad_request'))
      return false
    }
    this.#begin(call, head)
    this.#socket?.write(text, 'latin1')
    call.sending(this)
    return true
  }

  #begin (call: OriginCall, { method, body }: OutgoingHead): void {
    this.#call = call
    this.#request = body === 0 ? 'over' : body
    this.#answer = 'awaited'
    this.#heard = false
    this.#parser.expect(method === 'HEAD', body === 'tunnel')
    // The previous answer may have been paused at its very end.
    if (this.isPaused()) this.resume()
  }

  write (chunk: Buffer, done?: (error?: Error | null) => void): void {
    const socket = this.#socket
    // An empty chunk would end a chunked body.
    if (socket === undefined || socket.destroyed || this.#request === 'over' || chunk.length === 0) return
    if (typeof this.#request === 'number') {
      this.#request -= chunk.length
      if (this.#request < 0) return this.#fail(new Refusal('bad_request'))
    }
    if (this.#request !== 'chunked') {
      socket.write(chunk, done)
      return
    }
    socket.cork()
    socket.write(`${chunk.length.toString(16)}\r\n`, 'latin1')
    socket.write(chunk)
    socket.write('\r\n', 'latin1', done)
    socket.uncork()
  }

  end (trailers: readonly string[]): void {
    const body = this.#request
    if (body === 'over') return
    this.#request = 'over'
    if (body === 'chunked') {
      const lines = fieldLines(trailers)
      if (lines === undefined) return this.#fail(new Refusal('bad_request'))
      this.#socket?.write(`0\r\n${lines}\r\n`, 'latin1')
    } else if (body === 'tunnel') {
      this.#socket?.end()
    } else if (body > 0) {
      return this.#fail(new Refusal('bad_request'))
    }
    this.#settle()
  }

  get writableLength (): number {
    return this.#socket?.writableLength ?? 0
  }

  get writableNeedDrain (): boolean {
    return this.#socket?.writableNeedDrain ?? false
  }

  once (_event: 'drain', listener: () => void): void {
    const socket = this.#socket
    const either = (): void => {
      socket?.off('drain', either)
      socket?.off('close', either)
      listener()
    }
    socket?.once('drain', either)
    socket?.once('close', either)
  }

  pause (): void {
    this.#socket?.pause()
  }

  resume (): void {
    this.#socket?.resume()
  }

  isPaused (): boolean {
    return this.#socket?.isPaused() ?? false
  }

  cancel (call: OriginCall): void {
    if (this.#call !== call) return
    this.#call = undefined
    this.destroy()
  }

  leave (call: OriginCall): void {
    if (this.#call !== call) return
    this.#call = undefined
    this.#letGo()
  }

  #letGo (): void {
    if (this.#socket !== undefined) this.#sockets?.letGo(this.#socket)
  }

  /** It waits for a request from now on. */
  wait (): void {
    this.#waited = true
    this.#freeSinceMs = performance.now()
  }

  destroy (): void {
    this.#socket?.destroy()
  }

  /** Takes what the origin sent: a view of memory that is written over when this has returned. */
  read (view: Buffer): void {
    this.#heard = true
    const before = this.#answer
    try {
      this.#parser.read(view)
      if (this.#answer === 'header' && before === 'awaited') this.#call?.waiting()
      // Only now: bytes behind an answer must not become the answer to the next request.
      else if (this.#answer === 'over') this.#settle()
    } catch (error) {
      this.#caught(error)
    }
  }

  #run (work: () => void): void {
    try {
      work()
    } catch (error) {
      this.#caught(error)
    }
  }

  /** A bad answer is its origin's fault, any other error one of this program; both end the request and this connection. */
  #caught (error: unknown): void {
    if (error instanceof BadAnswer) return this.#fail(error)
    const call = this.#call
    this.#call = undefined
    this.#persistent = false
    this.destroy()
    call?.fault(error)
  }

  answerBegan (head: AnswerHead): void {
    this.#answer = 'header'
    // An origin that answers before it has the whole request may take the rest of it for the next one. An origin that has got as many bytes as were announced cannot.
    this.#persistent = head.persistent && head.status !== 101 && (this.#request === 'over' || this.#request === 0)
    this.#keptMs = head.keptMs
    this.#call?.answered(head)
  }

  answerBody (view: Buffer): void {
    this.#answer = 'body'
    this.#call?.body(view)
  }

  answerEnded (trailers: readonly string[]): void {
    this.#call?.ended(trailers)
    this.#answer = 'over'
  }

  /** Request and answer have ended: the connection is free, or ends. An origin may answer early and still read, so the request is written to its end. */
  #settle (): void {
    if (this.#call === undefined || this.#answer !== 'over' || this.#request !== 'over') return
    this.#call = undefined
    this.wait()
    // An exception of the next request is handled by `carry`.
    if (this.usable) this.#owner.free(this)
    // The last bytes of the request may not have left yet.
    else this.#letGo()
  }

  #fail (error: unknown): void {
    const call = this.#call
    const answered = this.#answer === 'over'
    this.#call = undefined
    this.destroy()
    if (!answered && call !== undefined) fail(call, error)
  }

  #ended (): void {
    this.#persistent = false
    this.#parser.close()
    if (this.#answer === 'over') this.#settle()
  }

  #closed (): void {
    this.#owner.gone(this)
    this.#fail(this.#error ?? new Error('the origin closed the connection'))
  }
}
