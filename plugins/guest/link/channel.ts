// One request to the guest with its streams: opened by the host, ended by the guest's RESULT or by the end of the link.
import { BerthError } from '../../../core/errors/define.ts'
import { guestRefused } from '../errors.ts'
import { FieldReader } from './fields.ts'
import { encodeCredit, encodeFrame, FrameType } from './frames.ts'
import { decodeRefusal, encodeControl, type Control } from './messages.ts'
import type { Outbox, Sender } from './outbox.ts'
import { ReceiveStream } from './receive-stream.ts'
import { SendStream } from './send-stream.ts'
import { ProtocolViolation } from './violation.ts'

export interface ChannelSpec<T> {
  /** whether the host sends a stream */
  readonly input: boolean
  /** numbers of the streams that the guest sends */
  readonly outputs: readonly number[]
  /** Called when the guest reports that the request has begun: an empty DATA frame on stream 1, before anything else but a refusal. Absent: the request has no such report. */
  readonly begun?: () => void
  /** Throws a `BerthError` for a refusal, a `ProtocolViolation` for an invalid result. */
  readonly decode: (fields: FieldReader) => T
}

/** The part of a channel that the link uses, whatever its result. */
export interface OpenChannel {
  data (stream: number, piece: Buffer): void
  eof (stream: number): void
  credit (bytes: number): void
  finish (payload: Buffer): void
  abandon (error: BerthError): void
}

export class Channel<T> implements OpenChannel {
  readonly id: number
  readonly input: SendStream
  readonly result: Promise<T>
  readonly #spec: ChannelSpec<T>
  readonly #outbox: Outbox
  readonly #outputs = new Map<number, ReceiveStream>()
  /** callers of `controlInTurn` that wait */
  readonly #turns = new Set<Sender>()
  #settle: { resolve (value: T): void, reject (error: Error): void }
  #open = true
  #begun: boolean

  constructor (id: number, outbox: Outbox, spec: ChannelSpec<T>) {
    this.id = id
    this.#spec = spec
    this.#outbox = outbox
    this.#begun = spec.begun === undefined
    this.input = new SendStream(id, outbox)
    for (const stream of spec.outputs) {
      this.#outputs.set(stream, new ReceiveStream((bytes) => {
        if (this.#open) outbox.send(encodeCredit(id, stream, bytes))
      }))
    }
    this.#settle = { resolve: () => {}, reject: () => {} }
    this.result = new Promise<T>((resolve, reject) => { this.#settle = { resolve, reject } })
    // Nobody may be waiting any more when the link ends; that must not count as an unhandled rejection.
    this.result.catch(() => {})
  }

  output (stream: number): ReceiveStream {
    const output = this.#outputs.get(stream)
    if (output === undefined) throw new ProtocolViolation(`used stream ${stream}, which its channel does not have`)
    return output
  }

  control (control: Control): void {
    if (this.#open) this.#outbox.send(encodeFrame(FrameType.control, this.id, 0, encodeControl(control)))
  }

  /** The same, for a caller that may have any number of them. Resolves when the next one may be sent, or the channel has ended. */
  async controlInTurn (control: Control): Promise<void> {
    this.control(control)
    if (!this.#open || this.#outbox.ready) return
    await new Promise<void>((resolve) => {
      const turn: Sender = {
        pump: () => {
          this.#turns.delete(turn)
          resolve()
        }
      }
      this.#turns.add(turn)
      this.#outbox.wait(turn)
    })
  }

  #endTurns (): void {
    for (const turn of this.#turns) {
      this.#outbox.forget(turn)
      turn.pump()
    }
  }

  data (stream: number, piece: Buffer): void {
    if (!this.#begun && stream === 1 && piece.length === 0) {
      this.#begun = true
      this.#spec.begun?.()
      return
    }
    this.#expectBegun()
    this.output(stream).accept(piece)
  }

  eof (stream: number): void {
    this.#expectBegun()
    this.output(stream).finishByGuest()
  }

  credit (bytes: number): void {
    this.#expectBegun()
    if (!this.#spec.input) throw new ProtocolViolation('granted credit to a channel without input')
    this.input.credit(bytes)
  }

  /** Takes the guest's result. Throws `ProtocolViolation`, with the channel still open, when it is invalid. */
  finish (payload: Buffer): void {
    const outcome = this.#decode(new FieldReader(payload))
    if (outcome.refusal === undefined) this.#expectBegun()
    this.#open = false
    this.#endTurns()
    for (const output of this.#outputs.values()) output.finish()
    if (outcome.refusal === undefined) {
      this.input.discard()
      this.#settle.resolve(outcome.value)
    } else {
      this.input.destroy(outcome.refusal)
      this.#settle.reject(outcome.refusal)
    }
  }

  /** The link has ended. */
  abandon (error: BerthError): void {
    if (!this.#open) return
    this.#open = false
    this.#endTurns()
    this.#settle.reject(error)
    this.input.destroy(error)
    for (const output of this.#outputs.values()) output.destroy(error)
  }

  #expectBegun (): void {
    if (!this.#begun) throw new ProtocolViolation('went on with what it had not begun')
  }

  #decode (fields: FieldReader): { readonly value: T, readonly refusal: undefined } | { readonly refusal: BerthError } {
    try {
      return { value: this.#spec.decode(fields), refusal: undefined }
    } catch (error) {
      if (error instanceof BerthError) return { refusal: error }
      throw error
    }
  }
}

/** Throws the refusal that a result with an error stands for. */
export function refuseOn (fields: FieldReader): void {
  const refusal = decodeRefusal(fields)
  if (refusal !== undefined) throw guestRefused(refusal.message, refusal)
}
